"""Everything an endpoint needs, handed over in one piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any, Protocol

from prometheus_client import CollectorRegistry
from structlog.typing import FilteringBoundLogger

from hotprefix.api.admin_desk import AdminPart
from hotprefix.api.dashboard.recent import RecentRequests
from hotprefix.api.identity import Doorman
from hotprefix.api.inflight import InFlight
from hotprefix.api.settings import ApiSettings
from hotprefix.api.start_gate import StartGate
from hotprefix.base.clock import Clock
from hotprefix.engine.front import EngineFront
from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.ledger.ledger import Ledger
from hotprefix.modes.caching import Caching
from hotprefix.modes.doctor import Doctor
from hotprefix.modes.named import NamedCaches
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.profile import Profile
from hotprefix.prompt.chat import Message, Tool
from hotprefix.prompt.preprocess.catalogue import StepName
from hotprefix.prompt.spans import ContentBlock, SpannedPrompt
from hotprefix.sessions.sessions import Sessions


class Prompts(Protocol):
    """Makes prompts out of requests (`hotprefix.prompt.builder.PromptBuilder` is one).

    The verbs raise `ContextLengthExceeded`, for texts that can't fit before tokenising them.
    """

    def chat(
        self, messages: Sequence[Message], tools: Sequence[Tool], variables: Mapping[str, Any], tenant: str
    ) -> list[int]:
        """Token ids of a conversation, with the opening of the answer at its end.

        Answers that `tenant` was given before have the ids they were drawn as.
        """
        ...

    def spanned(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool],
        variables: Mapping[str, Any],
        tenant: str,
    ) -> SpannedPrompt:
        """As `chat`, with the places of the content blocks; `blocks[i]` are those of message i."""
        ...

    def continued(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool],
        variables: Mapping[str, Any],
        tenant: str,
    ) -> SpannedPrompt:
        """As `spanned`, up to the end of the last message, an answer that was begun.

        Raises `InvalidRequest` where the template does not allow that.
        """
        ...

    def measured(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool],
        variables: Mapping[str, Any],
        tenant: str,
    ) -> SpannedPrompt:
        """As `spanned`, of any length, and equal for equal messages at any time."""
        ...

    def text(self, prompt: str, tenant: str) -> list[int]:
        """Token ids of a raw prompt of `tenant`."""
        ...

    def within(self, limit: int) -> Prompts:
        """The same with another limit in tokens."""
        ...


@dataclass(frozen=True, slots=True)
class Service:
    """`workers` tokenise, so that the event loop never waits for a long prompt. `profile` says how the
    caches behave and what is reported, `profiles` are all there are, for dialects with rules of their own;
    `caching` keeps explicit and session entries, `sessions` the responses that can be gone on from.
    `named` are prefixes kept by name, `gate` opens once those of the start are warm, and `preprocess`
    are the steps that prompts go through where a request says nothing else. `doorman` asks for API keys and
    `admin` are the parts of the admin API; without a state folder there is neither. `strategy` is how a
    request's cache is kept where it says nothing else. `recent` remembers requests for the dashboard, if
    there is one."""

    engine: EngineFront
    prompts: Prompts
    settings: ApiSettings
    inflight: InFlight
    workers: Executor
    registry: CollectorRegistry
    log: FilteringBoundLogger
    clock: Clock
    profile: Profile
    profiles: ProfileBook
    caching: Caching
    named: NamedCaches
    gate: StartGate
    preprocess: tuple[StepName, ...]
    doctor: Doctor
    ledger: Ledger | None
    sessions: Sessions
    doorman: Doorman | None = None
    admin: tuple[AdminPart, ...] = ()
    strategy: StrategySettings = field(default_factory=StrategySettings)
    recent: RecentRequests | None = None
