"""Whether a change lowers the cacheable share too far, and which requests and causes made it so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from hotprefix.diagnosis.explain import redacted
from hotprefix.diagnosis.reason import MissReport, Reason
from hotprefix.doctor.explain.difference import Difference
from hotprefix.doctor.explain.difference import redacted as without_words
from hotprefix.doctor.gate.side import Line, Side
from hotprefix.doctor.place import Place

_NOISE = 32
"""Tokens of one request that are not worth a line."""
_EXACTLY = 1e-9


@dataclass(frozen=True, slots=True)
class Limits:
    """The share may fall by `points` (0.02: two percentage points), or by less than `least` tokens."""

    points: float = 0.02
    least: int = 0


@dataclass(frozen=True, slots=True)
class Worse:
    """A request that reuses less than before. `change` is the first difference between its two versions; None
    if it was not looked for, as in logs, or if it `is_same` and others changed. `report` says why it can't
    reuse more now. `more` others of the same file got worse for the same reason, not as much."""

    place: Place
    tokens: int
    before: int
    after: int
    report: MissReport
    change: Difference | None = None
    more: int = 0
    is_same: bool = False

    @property
    def lost(self) -> int:
        """Tokens that it reuses no more."""
        return self.before - self.after


@dataclass(frozen=True, slots=True)
class Grown:
    """A cause of losses that costs more than before, in tokens."""

    reason: Reason
    detail: str
    pattern: str
    before: int
    after: int
    sample: MissReport
    place: Place


@dataclass(frozen=True, slots=True)
class Gate:
    """The comparison. `missing` and `new` are files that only one side has; they are not compared."""

    before: Side
    after: Side
    limits: Limits
    worse: tuple[Worse, ...]
    grown: tuple[Grown, ...]
    missing: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fall(self) -> float:
        """By how much the share fell, 0 to 1; negative if it rose."""
        return self.before.share - self.after.share

    @property
    def lost(self) -> int:
        """Tokens of the later side that the earlier share would have reused."""
        return max(0, round(self.fall * self.after.tokens))

    @property
    def is_passed(self) -> bool:
        """Whether the change may go in."""
        return self.fall <= self.limits.points + _EXACTLY or self.lost < self.limits.least

    def redacted(self) -> Gate:
        """Without the words of prompts."""
        worse = tuple(
            replace(
                one,
                report=redacted(one.report),
                change=None if one.change is None else without_words(one.change),
            )
            for one in self.worse
        )
        grown = tuple(replace(one, sample=redacted(one.sample)) for one in self.grown)
        return replace(self, worse=worse, grown=grown)


def worse_lines(
    before: Mapping[str, Line],
    after: Mapping[str, Line],
    change: Callable[[str], Difference | None] | None,
    most: int,
) -> tuple[Worse, ...]:
    """Requests on both sides that reuse a smaller part of themselves now, those that lose most first."""
    found: list[tuple[str, Worse]] = []
    for key, new in after.items():
        old = before.get(key)
        if old is None or not old.tokens:
            continue
        # As many tokens of the later prompt as the same share of it would be.
        kept = round(old.read * new.tokens / old.tokens)
        if kept - new.read >= _NOISE:
            found.append((key, Worse(new.place, new.tokens, kept, new.read, new.report)))
    found.sort(key=lambda one: (not one[1].report.avoidable, -one[1].lost))
    groups: dict[tuple[str, Reason, str], tuple[str, Worse]] = {}
    for key, worse in found:
        alike = (worse.place.file, worse.report.reason, worse.report.detail)
        first = groups.get(alike)
        groups[alike] = (
            (key, worse) if first is None else (first[0], replace(first[1], more=first[1].more + 1))
        )
    worst = list(groups.values())[:most]
    if change is None:
        return tuple(worse for _, worse in worst)
    changed = ((worse, change(key)) for key, worse in worst)
    return tuple(replace(worse, change=found, is_same=found is None) for worse, found in changed)


def grown_causes(before: Side, after: Side, most: int) -> tuple[Grown, ...]:
    """Causes that cost a larger part of all prompt tokens than before; `before` is in tokens of the later
    side's size."""
    scale = after.tokens / before.tokens if before.tokens else 1.0
    found = []
    for key, cause in after.sums.causes.items():
        earlier = before.sums.causes.get(key)
        known = round(earlier.sum.lost * scale) if earlier is not None else 0
        if cause.sum.lost - known >= _NOISE:
            grown = Grown(*key, known, cause.sum.lost, cause.sample, cause.place)
            found.append(grown)
    found.sort(key=lambda one: one.before - one.after)
    return tuple(found[:most])
