"""A named cache: a prefix that a tenant asked to keep under a name."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class CacheState(StrEnum):
    """WARM: its keys and values are held. STALE: they have to be computed again before it helps."""

    WARM = "warm"
    STALE = "stale"


@dataclass(frozen=True, slots=True)
class Definition:
    """What outlives the process. `document` is the prefix as the client gave it.

    It has `messages` and perhaps `tools`, or a `text`. `identity` names model, template and KV format
    that it was last computed for. Times are in Unix seconds; `ttl` None means that it never expires.
    """

    tenant: str
    name: str
    document: dict[str, Any]
    identity: str
    tokens: int
    created: float
    ttl: float | None
    expires: float | None


@dataclass(slots=True)
class NamedCache:
    """A definition and what this process holds of it: `token_ids` are pinned under `pin` while it is warm.

    `note` says why it is stale, or that it was computed for another model before. `saved` is the
    end of its life as the store has it.
    """

    definition: Definition
    token_ids: tuple[int, ...] = ()
    pin: str = ""
    hits: int = 0
    note: str = ""
    saved: float = 0.0

    @property
    def state(self) -> CacheState:
        return CacheState.WARM if self.pin else CacheState.STALE


@dataclass(frozen=True, slots=True)
class NamedLimits:
    """The most there may be: caches in all and for each tenant, tokens for each tenant, seconds of a TTL."""

    caches: int = 256
    per_tenant: int = 32
    tokens_per_tenant: int = 65_536
    longest_ttl: float = 30 * 86_400.0
