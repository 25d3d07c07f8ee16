"""A comparison as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hotprefix.doctor.prompts.experiment.comparison import Comparison, Finding


def comparison_facts(found: Comparison) -> dict[str, Any]:
    """Times in seconds, shares as parts of 1, money in its currency; null is "not known"."""
    return {
        "prompt": found.prompt,
        "control": found.control,
        "unit": found.unit,
        "alpha": found.alpha,
        "arms": [asdict(arm) for arm in found.arms],
        "split": {"p": found.split_p, "mismatch": found.is_mismatched},
        "findings": [_finding(finding) for finding in found.findings],
        "correction": "Holm",
        "worse": found.is_worse,
        "judged": found.is_judged,
        "cautions": list(found.cautions),
    }


def _finding(finding: Finding) -> dict[str, Any]:
    outcome, relative = finding.outcome, finding.relative
    return {
        "metric": finding.metric,
        "title": finding.title,
        "unit": finding.unit,
        "better": finding.better.value,
        "arm": finding.arm,
        "control": finding.control,
        "value": None if finding.values is None else finding.values[0],
        "control_value": None if finding.values is None else finding.values[1],
        "units": {"arm": finding.units[0], "control": finding.units[1]},
        "test": None if outcome is None else outcome.test,
        "difference": None if outcome is None else outcome.difference,
        "interval": None if outcome is None else [outcome.low, outcome.high],
        "relative": None if relative is None else relative[0],
        "relative_interval": None if relative is None else list(relative[1:]),
        "p": None if outcome is None else outcome.p,
        "p_corrected": finding.corrected,
        "detectable": finding.detectable,
        "verdict": finding.verdict.value,
        "why": finding.why,
    }
