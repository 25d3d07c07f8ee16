"""Numbers of a comparison for people."""

from __future__ import annotations

from hotprefix.doctor.prompts.experiment.comparison import Finding, Verdict


def amount(value: float, unit: str, *, signed: bool = False) -> str:
    """A value with its unit."""
    sign = "+" if signed else ""
    if unit == "s":
        return f"{value * 1000:{sign},.0f} ms" if abs(value) < 10 else f"{value:{sign},.2f} s"
    if unit == "%":
        return f"{value * 100:{sign}.2f} {'points' if signed else '%'}"
    return f"{value:{sign},.4g} {unit}".rstrip()


def effect(finding: Finding) -> str:
    """The difference with its interval."""
    outcome = finding.outcome
    if outcome is None:
        return "–"
    unit = finding.unit
    low, high = (amount(end, unit, signed=True) for end in (outcome.low, outcome.high))
    told = f"{amount(outcome.difference, unit, signed=True)} ({low} to {high})"
    relative = finding.relative
    return told if relative is None else f"{told}, {relative[0]:+.1%}"


def reading(finding: Finding) -> str:
    """The verdict in a few words."""
    if finding.verdict is Verdict.NO_DIFFERENCE and finding.detectable:
        least = amount(finding.detectable, finding.unit, signed=True).lstrip("+")
        return f"{finding.verdict.value}; {least} would have been"
    return f"{finding.verdict.value}: {finding.why}" if finding.why else finding.verdict.value


def probability(value: float | None) -> str:
    """A p-value."""
    if value is None:
        return "–"
    return f"{value:.3f}" if value >= 0.001 else "< 0.001"
