"""What the rules look at, and what they find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hotprefix.diagnosis.compare import Comparison, Scope, compare
from hotprefix.diagnosis.facts import MissFacts
from hotprefix.diagnosis.reason import Divergence, Evidence, Reason


@dataclass(frozen=True, slots=True)
class Finding:
    """A reason that holds. `ideal` tokens it kept from being read, all told; `words` fill its advice."""

    reason: Reason
    ideal: int
    evidence: Evidence
    detail: str = ""
    is_avoidable: bool = True
    divergence: Divergence | None = None
    words: Mapping[str, str | int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """The facts with the comparison worked out. `usable` tokens should have been read as things are."""

    facts: MissFacts
    comparison: Comparison

    @property
    def matched(self) -> int:
        """Tokens read; none if that was not reported."""
        return self.facts.matched or 0

    @property
    def usable(self) -> int:
        """Tokens that an unlimited cache would have given, under the mode's rules."""
        return max(self.comparison.usable, self.facts.known)

    @property
    def shared(self) -> int:
        """Tokens in common with the earlier prompt or known to the store, marked or not."""
        return max(self.comparison.shared, self.usable)

    @property
    def has_all(self) -> bool:
        """Whether nothing usable was left: but for rounding, and the last token, always computed."""
        return self.usable - self.matched <= max(1, self.facts.rules.quantum)


def view(facts: MissFacts) -> View:
    """The facts with their comparison."""
    return View(facts, facts.comparison or comparison_of(facts))


def comparison_of(facts: MissFacts) -> Comparison:
    """Compare, if there is something to compare with. Needs snapshots, mode and rules only."""
    if facts.earlier is None:
        return Comparison(0, 0, 0)
    scope = Scope(facts.is_marked, facts.rules.minimum if facts.is_marked else 0, facts.least)
    return compare(facts.earlier, facts.snapshot, scope)
