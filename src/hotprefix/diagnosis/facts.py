"""Everything that a diagnosis rests on, gathered by those who know it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from hotprefix.diagnosis.compare import Comparison
from hotprefix.diagnosis.snapshot import PromptSnapshot
from hotprefix.profiles.profile import Profile

IMPLICIT, EXPLICIT, SESSION, OFF = "implicit", "explicit", "session", "none"
"""What `MissFacts.mode` can be."""


class Eviction(StrEnum):
    """Why room was made."""

    CAPACITY = "CAPACITY"
    TENANT_QUOTA = "TENANT_QUOTA"
    TOO_BIG = "TOO_BIG"


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The rules that decided: least tokens of an entry or hit, rounding of reported hits, and how
    many blocks behind a marker entries are found (`lookback_counts_marker`: its own is one)."""

    minimum: int = 0
    quantum: int = 1
    lookback: int | None = None
    lookback_counts_marker: bool = False


def rules_of(profile: Profile, mode: str, model: str) -> CacheRules:
    """The rules of a profile for one mode and model; a mode that it lacks has none."""
    if mode == IMPLICIT and profile.implicit is not None:
        return CacheRules(profile.implicit.minimum_for(model), profile.implicit.quantum)
    if mode == EXPLICIT and profile.explicit is not None:
        rules = profile.explicit
        return CacheRules(rules.minimum_for(model), 1, rules.lookback, rules.lookback_counts_marker)
    if mode == SESSION and profile.session is not None:
        return CacheRules(profile.session.minimum)
    return CacheRules()


@dataclass(frozen=True, slots=True)
class MarkerFacts:
    """What became of the request's markers.

    `ignored` paths were beyond the limit `most`. `blocks_behind` is the distance of an entry that
    exists, but too far behind (None: worked out from the snapshots). `missing` tokens to the
    minimum (None: likewise). `writes_unread` entries were written in a row without a read.
    `conflict` names both modes (`explicit/session`). `is_needed`: the model caches marked prompts only.
    """

    ignored: tuple[str, ...] = ()
    most: int = 0
    blocks_behind: int | None = None
    missing: int | None = None
    writes_unread: int = 0
    is_frozen: bool = False
    is_needed: bool = False
    is_unsupported: bool = False
    conflict: str = ""


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What the store's log says of the longest entry that would have served.

    `evicted` tells why blocks of the prefix had to make room; if the log of evictions has forgotten some,
    they `may_be_evicted`. `expired_for` seconds ago its lifetime `ttl` ended; `flushed` names what
    changed (weights, template, adapter, kv_format); `failed` what went wrong. `known_to_others` is for
    the operator's eyes: it never shows in a report.
    """

    expired_for: float | None = None
    ttl: float | None = None
    evicted: Eviction | None = None
    may_be_evicted: bool = False
    is_write_pending: bool = False
    flushed: str = ""
    failed: str = ""
    is_pin_failed: bool = False
    is_lost_at_restart: bool = False
    known_to_others: bool = False

    @property
    def is_silent(self) -> bool:
        """Whether the log has nothing to say to this tenant."""
        told = (self.expired_for is not None, self.evicted, self.is_write_pending, self.flushed, self.failed)
        return not any((*told, self.is_pin_failed, self.is_lost_at_restart))


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What the engine can't do: `disabled` names a switched-off cache, `no_rollback` the kind of
    layers (`SWA`, `recurrent`), `missing_state` what is gone; `block_size` tokens are the least it reuses."""

    disabled: str = ""
    block_size: int = 1
    no_rollback: str = ""
    missing_state: str = ""


@dataclass(frozen=True, slots=True)
class PlacementFacts:
    """Where the request went: the worker or key that was chosen instead, or why the router was blind."""

    routed_elsewhere: str = ""
    router_blind: str = ""


@dataclass(frozen=True, slots=True)
class MissFacts:
    """One request's facts.

    `matched` is None if an upstream did not report it. `known` tokens an unlimited cache would
    have had, if the store knows better than the snapshots. `money_per_million` is what a million
    tokens cost more when computed than when read. `least` is the smallest loss worth a reason. The
    `comparison` of the snapshots, if it was made already.
    """

    snapshot: PromptSnapshot
    earlier: PromptSnapshot | None
    mode: str
    matched: int | None
    rules: CacheRules = field(default_factory=CacheRules)
    markers: MarkerFacts = field(default_factory=MarkerFacts)
    store: StoreFacts = field(default_factory=StoreFacts)
    engine: EngineFacts = field(default_factory=EngineFacts)
    placement: PlacementFacts = field(default_factory=PlacementFacts)
    known: int = 0
    is_best_effort: bool = False
    money_per_million: float = 0.0
    least: int = 32
    comparison: Comparison | None = None

    @property
    def is_marked(self) -> bool:
        """Whether entries end at marked blocks."""
        return self.mode in (EXPLICIT, SESSION)
