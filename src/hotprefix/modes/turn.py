"""One request's dealings with the caches, from its prompt to its bill."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotprefix.diagnosis.reason import MissReport
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.modes.marker import Marker
from hotprefix.profiles.profile import Profile
from hotprefix.prompt.spans import SpannedPrompt


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """What the caches need to know of a request.

    `parameters` are those that change the prefix (model name, tools' digest, template variables)
    by name; `session` is true for Responses requests with the session cache enabled; `scene` is
    the client's conversation or prompt name, if it gave one.
    """

    tenant: str
    model: str
    profile: Profile
    prompt: SpannedPrompt
    markers: tuple[Marker, ...] = ()
    session: bool = False
    parameters: dict[str, str] = field(default_factory=dict)
    scene: str = ""


@dataclass(slots=True)
class Turn:
    """The verdict at the start: the mode, `hit` tokens that will be billed as read, warnings.

    `warnings` are short sentences for the header `x-hotprefix-warning`.
    """

    request: TurnRequest
    mode: Mode
    hit: int
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TurnResult:
    """What is known once the request has ended: the classes and why the cache gave no more."""

    classes: TokenClasses
    report: MissReport
