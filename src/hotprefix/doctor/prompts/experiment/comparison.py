"""What a comparison of versions found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from hotprefix.doctor.prompts.experiment.metric import Better
from hotprefix.doctor.prompts.experiment.statistic import Outcome


class Verdict(StrEnum):
    """What can be said of an arm by one metric."""

    BETTER = "better"
    WORSE = "worse"
    NO_DIFFERENCE = "no difference found"
    TOO_FEW = "too few"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True)
class Finding:
    """One arm against the control by one metric.

    `values` and `units` are of arm and control. `corrected` is Holm's p-value over all findings; `detectable`
    the smallest difference that would have been found with 80 % probability, where none was found.
    """

    metric: str
    title: str
    unit: str
    better: Better
    arm: str
    control: str
    values: tuple[float, float] | None
    units: tuple[int, int]
    verdict: Verdict
    outcome: Outcome | None = None
    corrected: float | None = None
    detectable: float | None = None
    why: str = ""

    @property
    def relative(self) -> tuple[float, float, float] | None:
        """Difference and its interval as parts of the control's value; None if there are none."""
        if self.outcome is None or self.values is None or not self.values[1]:
            return None
        base = abs(self.values[1])
        return self.outcome.difference / base, self.outcome.low / base, self.outcome.high / base


@dataclass(frozen=True, slots=True)
class ArmFacts:
    """One arm: how many there were of it, and how its answers ended."""

    arm: str
    weight: float | None
    requests: int
    units: int
    since: float | None
    until: float | None
    finishes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`split_p` is the p-value of the sample-ratio test, None without weights; below `SPLIT_ALPHA` nothing
    can be concluded. `cautions` are sentences for whoever reads the result."""

    prompt: str
    control: str
    unit: str
    alpha: float
    arms: tuple[ArmFacts, ...]
    findings: tuple[Finding, ...]
    split_p: float | None
    cautions: tuple[str, ...]

    @property
    def is_mismatched(self) -> bool:
        """Whether arms have other sizes than their weights can explain."""
        return self.split_p is not None and self.split_p < SPLIT_ALPHA

    @property
    def is_worse(self) -> bool:
        """Whether some arm is worse than the control in something."""
        return any(finding.verdict is Verdict.WORSE for finding in self.findings)

    @property
    def is_judged(self) -> bool:
        """Whether anything could be concluded at all."""
        undecided = (Verdict.TOO_FEW, Verdict.NOT_JUDGED)
        return any(finding.verdict not in undecided for finding in self.findings)


SPLIT_ALPHA = 0.001
"""A mismatch is told below this: real ones are far below, and every experiment is tested."""
