"""Arms against the control: every metric's test, corrected for being several, with the checks around them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from hotprefix.doctor.prompts.errors import ExperimentError
from hotprefix.doctor.prompts.experiment.comparison import (
    SPLIT_ALPHA,
    ArmFacts,
    Comparison,
    Finding,
    Verdict,
)
from hotprefix.doctor.prompts.experiment.metric import Better, Metric, first_token, hit_rate, mean, share
from hotprefix.doctor.prompts.experiment.sample import Sample, samples_of
from hotprefix.doctor.prompts.experiment.statistic import Level, detectable, holm, split_test

_MIXED_SHARE = 0.01
_OVERLAP = 0.5


@dataclass(frozen=True, slots=True)
class Rules:
    """How a comparison is judged. `fewest` units of an arm that have a value, below which nothing is said."""

    alpha: float = 0.05
    fewest: int = 30
    seed: int = 1
    score: Better = Better.HIGHER


@dataclass(frozen=True, slots=True)
class Design:
    """What was run: `arms` in order, the control first; `weights` None if they are not known. `unit` is the
    word for what was split."""

    prompt: str
    arms: tuple[str, ...]
    weights: Mapping[str, float] | None
    unit: str


def compare(calls: pl.DataFrame, design: Design, rules: Rules | None = None) -> Comparison:
    """Hold every arm against the first one.

    `calls` has a row a request with `unit`, `prompt_version`, `at`, `first_token`, `prompt`, `read`, `money`,
    `currency`, `failed`, `cut`, `finish` and `score`, any of them null. Raises `ExperimentError`.
    """
    rules = rules or Rules()
    if len(design.arms) < 2:
        raise ExperimentError(
            f"Prompt {design.prompt!r} has one version in these logs; a comparison needs two."
        )
    samples, mixed = samples_of(calls, design.arms)
    split_p = _split(samples, design)
    findings = _findings(samples, design, rules)
    if split_p is not None and split_p < SPLIT_ALPHA:
        findings = [
            replace(finding, verdict=Verdict.NOT_JUDGED, why="arms have other sizes than their weights")
            for finding in findings
        ]
    return Comparison(
        design.prompt,
        design.arms[0],
        design.unit,
        rules.alpha,
        tuple(_facts(samples[arm], design) for arm in design.arms),
        tuple(findings),
        split_p,
        tuple(_cautions(samples, design, mixed, split_p)),
    )


def _findings(samples: Mapping[str, Sample], design: Design, rules: Rules) -> list[Finding]:
    control = samples[design.arms[0]]
    found = [
        _tested(metric, samples[arm], control, rules)
        for arm in design.arms[1:]
        for metric in _metrics(samples.values(), rules)
    ]
    tested = [finding for finding in found if finding.outcome is not None]
    corrected = iter(holm([finding.outcome.p for finding in tested if finding.outcome is not None]))
    alpha = rules.alpha / max(1, len(tested))
    return [
        finding if finding.outcome is None else _judged(finding, next(corrected), rules.alpha, alpha)
        for finding in found
    ]


def _metrics(samples: Iterable[Sample], rules: Rules) -> list[Metric]:
    every = pl.concat([sample.calls for sample in samples])
    metrics = [first_token(), hit_rate()]
    currencies = every.drop_nulls("money")["currency"].drop_nulls().unique().to_list()
    if len(currencies) == 1:
        metrics.append(mean("money", "cost of a request", str(currencies[0]), Better.LOWER))
    metrics += [share("failed", "failed requests"), share("cut", "answers cut off by length")]
    metrics.append(mean("score", "score", "", rules.score))
    known = {"first_token": "first_token", "hit_rate": "read"}
    return [one for one in metrics if every[known.get(one.name, one.name)].count()]


def _tested(metric: Metric, arm: Sample, control: Sample, rules: Rules) -> Finding:
    units = metric.count(arm), metric.count(control)
    values = (metric.value(arm), metric.value(control)) if min(units) else None
    bare = Finding(
        metric.name,
        metric.title,
        metric.unit,
        metric.better,
        arm.arm,
        control.arm,
        values,
        units,
        Verdict.TOO_FEW,
    )
    if min(units) < rules.fewest:
        short = rules.fewest - min(units)
        return replace(bare, why=f"{short:,} more needed: at least {rules.fewest} in each arm")
    outcome = metric.test(arm, control, Level(rules.alpha, rules.seed))
    return replace(bare, outcome=outcome, verdict=Verdict.NO_DIFFERENCE)


def _judged(finding: Finding, corrected: float, alpha: float, each: float) -> Finding:
    """With a verdict at `alpha`; `each` is what one of so many tests may use."""
    outcome = finding.outcome
    assert outcome is not None
    if corrected >= alpha or outcome.difference == 0:
        return replace(finding, corrected=corrected, detectable=detectable(outcome.error, each))
    is_higher = outcome.difference > 0
    good = is_higher is (finding.better is Better.HIGHER)
    return replace(finding, corrected=corrected, verdict=Verdict.BETTER if good else Verdict.WORSE)


def _split(samples: Mapping[str, Sample], design: Design) -> float | None:
    if design.weights is None:
        return None
    arms = [arm for arm in design.arms if design.weights.get(arm, 0) > 0]
    counts = [samples[arm].units for arm in arms]
    if len(arms) < 2 or not sum(counts):
        return None
    total = sum(design.weights[arm] for arm in arms)
    return split_test(counts, [design.weights[arm] / total for arm in arms])


def _facts(sample: Sample, design: Design) -> ArmFacts:
    calls = sample.calls
    ends = calls["finish"].fill_null("").value_counts(sort=True)
    weights = design.weights
    total = sum(weights.values()) if weights else 0.0
    return ArmFacts(
        sample.arm,
        weights.get(sample.arm, 0.0) / total if weights and total else None,
        sample.requests,
        sample.units,
        _number(calls["at"].min()),
        _number(calls["at"].max()),
        {str(name) or "not told": int(count) for name, count in ends.iter_rows()},
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _cautions(samples: Mapping[str, Sample], design: Design, mixed: int, split_p: float | None) -> list[str]:
    told = []
    if split_p is not None and split_p < SPLIT_ALPHA:
        counts = ", ".join(f"{arm} {samples[arm].units:,}" for arm in design.arms)
        told.append(
            f"The arms have {counts} {design.unit}s, which their weights do not explain (chi-square, p = "
            f"{split_p:.2g}). Something sends or logs one arm more than another: nothing else here can be "
            "trusted until it is found."
        )
    if design.unit == "request":
        told.append(
            "Requests count singly. Where a session or a user sends several, they are alike, and differences "
            "look surer than they are: log session ids, or use --unit."
        )
    units = sum(sample.units for sample in samples.values())
    if mixed:
        share_of = mixed / (units + mixed)
        told.append(
            f"{mixed:,} {design.unit}s had requests of several arms and are left out"
            + (
                f": {share_of:.1%}, too many for a split by {design.unit}."
                if share_of > _MIXED_SHARE
                else "."
            )
        )
    if (overlap := _overlap(samples)) is not None and overlap < _OVERLAP:
        told.append(
            f"The arms ran together for {overlap:.0%} of the time only: what changed besides the "
            "prompt is in the differences, too."
        )
    currencies = {
        name for sample in samples.values() for name in sample.calls["currency"].drop_nulls().unique()
    }
    if len(currencies) > 1:
        told.append(f"Cost is not compared: the logs have {', '.join(sorted(currencies))}.")
    return told


def _overlap(samples: Mapping[str, Sample]) -> float | None:
    """The time that the arms have in common, as a part of that of all together; of the middle nine tenths."""
    spans = []
    for sample in samples.values():
        times = sample.calls["at"].drop_nulls()
        if not len(times):
            return None
        low, high = times.quantile(0.05), times.quantile(0.95)
        assert low is not None and high is not None
        spans.append((low, high))
    whole = max(high for _, high in spans) - min(low for low, _ in spans)
    both = min(high for _, high in spans) - max(low for low, _ in spans)
    return max(0.0, both) / whole if whole > 0 else None
