"""One vendor's caching rules at one date. Files in `data/` fill these; operators add their own."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum

from hotprefix.profiles.pattern import best_pattern


class Surplus(StrEnum):
    """What happens to markers beyond the limit."""

    KEEP_LAST = "keep_last"
    REJECT = "reject"


class Readable(StrEnum):
    """From when on an entry that a request writes can be read by others."""

    AFTER_RESPONSE = "after_response"
    AT_FIRST_OUTPUT = "at_first_output"


class ToolMarkers(StrEnum):
    """What a marker on a tool definition does."""

    IGNORED = "ignored"
    CACHED = "cached"


@dataclass(frozen=True, slots=True)
class ImplicitRules:
    """Automatic reuse: hits of at least `minimum` tokens are reported, rounded down to `quantum`.

    `model_minimums` maps model patterns to minimums of their own; `minimum_for` knows both.
    """

    minimum: int
    quantum: int = 1
    model_minimums: dict[str, int] = field(default_factory=dict)

    def minimum_for(self, model: str) -> int:
        """Least tokens of a hit with `model`."""
        return _minimum_for(self.model_minimums, model, self.minimum)


@dataclass(frozen=True, slots=True)
class ExplicitRules:
    """Marked prefixes. `ttls` maps what a marker may say to seconds; `default_ttl` is a key of it.

    A marker finds entries at most `lookback` content blocks behind it; `lookback_counts_marker`
    says whether its own block is one of them. `longer_ttl_first` makes a shorter-lived marker
    before a longer-lived one an error. `model_minimums` as for `ImplicitRules`.
    """

    minimum: int
    ttls: dict[str, int]
    default_ttl: str
    max_markers: int
    surplus: Surplus
    lookback: int
    lookback_counts_marker: bool
    readable: Readable
    tool_markers: ToolMarkers
    longer_ttl_first: bool = False
    automatic_marker: bool = False
    model_minimums: dict[str, int] = field(default_factory=dict)

    def minimum_for(self, model: str) -> int:
        """Least tokens of an entry with `model`."""
        return _minimum_for(self.model_minimums, model, self.minimum)


@dataclass(frozen=True, slots=True)
class SessionRules:
    """Conversations through `previous_response_id`; responses are kept `retention_days`."""

    minimum: int
    ttl_seconds: int
    retention_days: int = 7


@dataclass(frozen=True, slots=True)
class PriceRow:
    """Money per million tokens of a model (`*` ends a prefix pattern) from a date on.

    The ratios multiply `input_per_million`: reads of implicit, explicit and session hits, and
    writes by TTL name. `price.price_of` picks the row and gives exact decimals.
    """

    model: str
    since: date
    currency: str
    input_per_million: float
    output_per_million: float
    read_implicit: float
    read_explicit: float
    read_session: float
    write: dict[str, float]


@dataclass(frozen=True, slots=True)
class Profile:
    """A named set of rules; a mode that is None does not exist there.

    `models` lists patterns of models that support explicit and session caches; empty means all.
    """

    name: str
    vendor: str
    dated: date
    sources: tuple[str, ...]
    implicit: ImplicitRules | None
    explicit: ExplicitRules | None
    session: SessionRules | None
    prices: tuple[PriceRow, ...]
    explicit_models: tuple[str, ...] = ()

    @property
    def least(self) -> int | None:
        """Tokens of the shortest prefix that any mode counts, with any model; None if no mode does."""
        counts = [rules.minimum for rules in (self.implicit, self.explicit, self.session) if rules]
        for rules in (self.implicit, self.explicit):
            counts += rules.model_minimums.values() if rules else ()
        return min(counts, default=None)


def _minimum_for(minimums: dict[str, int], model: str, default: int) -> int:
    pattern = best_pattern(minimums, model)
    return default if pattern is None else minimums[pattern]
