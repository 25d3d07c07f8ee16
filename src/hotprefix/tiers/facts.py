"""What is known of a block when it is decided where it goes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Reason(Enum):
    """Why a block is offered."""

    EVICTED = "the arena has no room for it any more"
    IDLE = "it is sealed, lies in the arena and nobody works on it"
    SHUTDOWN = "the server is about to end"
    FOUND_BELOW = "it was found in a lower tier"
    OVERFLOW = "a tier above has no room for it any more"


@dataclass(frozen=True, slots=True)
class BlockFacts:
    """`hits`: requests that reused it after the one that computed it. `position`: of its first
    token. `pinned`: an explicit cache, a session or an operator wants it kept."""

    hits: int = 0
    position: int = 0
    tokens: int = 32
    pinned: bool = False
    reason: Reason = Reason.EVICTED
