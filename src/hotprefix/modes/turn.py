"""One request's dealings with the caches, from its prompt to its bill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotprefix.diagnosis.reason import MissReport
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.modes.imprint import Imprint
from hotprefix.modes.marker import Marker
from hotprefix.profiles.profile import Profile
from hotprefix.prompt.spans import SpannedPrompt


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What the caches need to know of a request.

    `parameters` are those that change the prefix beside messages and `tools` (template variables),
    by name; `session` is true for Responses requests with the session cache enabled; `scene` is
    the client's conversation or prompt name, if it gave one; `warnings` are what its reader ignored.
    `partition`, unless empty, takes the tenant's place in the caches: scenes that share nothing.
    `notes` are response headers that say how the prompt came about. `imprint` is what was worked out
    of the prompt for this `cache_tenant`, if it was.
    """

    tenant: str
    model: str
    profile: Profile
    prompt: SpannedPrompt
    markers: tuple[Marker, ...] = ()
    session: bool = False
    parameters: dict[str, str] = field(default_factory=dict)
    scene: str = ""
    warnings: tuple[str, ...] = ()
    partition: str = ""
    tools: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    imprint: Imprint | None = None

    @property
    def cache_tenant(self) -> str:
        """Whose keys, pins and answers this request uses."""
        return self.partition or self.tenant


@dataclass(slots=True)
class Turn:
    """The verdict at the start, and what is learned on the way.

    `hit` tokens are billed as read (explicit and session modes; implicit hits are known only once
    the engine has looked). `markers` are those that count; `written` are tokens by TTL name.
    `warnings` are short sentences for the header `x-hotprefix-warning`. The flags feed the miss
    report: markers on an unsupported model, a marked prefix that lacks `short_by` tokens, a
    prefix that could not be kept, an entry whose blocks were gone when it was to be read.
    """

    request: TurnRequest
    mode: Mode
    hit: int
    markers: tuple[Marker, ...] = ()
    minimum: int = 0
    warnings: list[str] = field(default_factory=list)
    written: dict[str, int] = field(default_factory=dict)
    is_written: bool = False
    markers_ignored: bool = False
    short_by: int = 0
    pin_failed: bool = False
    hit_lost: bool = False


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What is known once the request has ended: the classes and why the cache gave no more."""

    classes: TokenClasses
    report: MissReport
