"""What the engine tells whoever counts: a few cheap calls, all from the engine's thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hotprefix.engine.request import FinishReason, Timings, Usage


@dataclass(frozen=True, slots=True)
class EngineGauges:
    """The engine's state at one moment.

    `running` and `waiting` count requests; `arena_bytes` is what the KV arena holds now and
    `arena_limit_bytes` what it may grow to. `blocks` counts KV blocks by state, each block in one
    of them: `free`, `in_use` by requests, `pinned` (held for later ones, used or not), `cached`.
    `not_kept` counts since the start the blocks that were dropped or refused, by why; `tenant_blocks`
    are those in the cache of each tenant that has a share.
    """

    running: int
    waiting: int
    arena_bytes: int
    arena_limit_bytes: int
    blocks: Mapping[str, int] = field(default_factory=dict)
    not_kept: Mapping[str, int] = field(default_factory=dict)
    tenant_blocks: Mapping[str, int] = field(default_factory=dict)


class EngineObserver(Protocol):
    """Hears of the engine's events. Calls must return at once and never raise."""

    def request_admitted(self, queued_seconds: float) -> None:
        """A request left the waiting line; not called again when a preempted one resumes."""
        ...

    def prompt_matched(self, prompt_tokens: int, cached_tokens: int) -> None:
        """The cache was asked for a prompt and had its first `cached_tokens` tokens."""
        ...

    def first_token(self, seconds: float) -> None:
        """A request has its first token, `seconds` after it was submitted."""
        ...

    def tokens(self, count: int, gaps: Sequence[float] = ()) -> None:
        """Once per step: `count` tokens were drawn in all sequences together.

        `gaps` holds the seconds since the previous token of each sequence that had one.
        """
        ...

    def finished(self, reason: FinishReason, timings: Timings, usage: Usage) -> None:
        """A request ended; with several choices, `reason` is that of the last to end."""
        ...

    def preempted(self) -> None:
        """A running request was put back into the waiting line to make room."""
        ...

    def evicted(self, blocks: int) -> None:
        """So many cached blocks were dropped to make room."""
        ...

    def gauges(self, gauges: EngineGauges) -> None:
        """The state after a step; called at most a few times per second."""
        ...


class NullObserver:
    """Counts nothing."""

    def request_admitted(self, queued_seconds: float) -> None:
        pass

    def prompt_matched(self, prompt_tokens: int, cached_tokens: int) -> None:
        pass

    def first_token(self, seconds: float) -> None:
        pass

    def tokens(self, count: int, gaps: Sequence[float] = ()) -> None:
        pass

    def finished(self, reason: FinishReason, timings: Timings, usage: Usage) -> None:
        pass

    def preempted(self) -> None:
        pass

    def evicted(self, blocks: int) -> None:
        pass

    def gauges(self, gauges: EngineGauges) -> None:
        pass
