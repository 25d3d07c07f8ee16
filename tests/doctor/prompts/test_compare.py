"""Versions held against each other: known effects are found, and what can't be judged is not."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from hotprefix.doctor.prompts.errors import ExperimentError
from hotprefix.doctor.prompts.experiment.comparison import Comparison, Finding, Verdict
from hotprefix.doctor.prompts.experiment.document import comparison_facts
from hotprefix.doctor.prompts.experiment.judge import Design, Rules, compare
from hotprefix.doctor.prompts.experiment.metric import Better
from hotprefix.doctor.prompts.experiment.plot import write_page
from tests.doctor.prompts.calls import World, calls

EVEN = Design("greeting", ("v1", "v2"), {"v1": 50, "v2": 50}, "session")


def found(world: World, design: Design = EVEN, rules: Rules | None = None) -> Comparison:
    return compare(calls(world), design, rules)


def by_metric(comparison: Comparison) -> dict[str, Finding]:
    return {finding.metric: finding for finding in comparison.findings}


def test_every_effect_is_found_with_its_direction_and_size() -> None:
    comparison = found(World(slower=1.5, dearer=2.5, hits=1.0, fails=0.2, score=0.6))
    findings = by_metric(comparison)
    assert {name: finding.verdict for name, finding in findings.items()} == {
        "first_token": Verdict.WORSE,
        "hit_rate": Verdict.BETTER,
        "money": Verdict.WORSE,
        "failed": Verdict.WORSE,
        "cut": Verdict.NO_DIFFERENCE,
        "score": Verdict.BETTER,
    }
    failed = findings["failed"].outcome
    assert failed is not None
    assert failed.low < 0.2 < failed.high
    score = findings["score"].outcome
    assert score is not None
    assert score.low < 0.6 < score.high
    relative = findings["first_token"].relative
    assert relative is not None
    assert 0.2 < relative[0] < 0.8
    assert comparison.is_worse
    assert comparison.is_judged
    assert comparison.cautions == ()


def test_without_an_effect_nothing_is_told_but_what_would_have_been_found() -> None:
    comparison = found(World())
    assert {finding.verdict for finding in comparison.findings} == {Verdict.NO_DIFFERENCE}
    for finding in comparison.findings:
        assert finding.outcome is not None
        assert finding.detectable is not None
        assert finding.detectable > abs(finding.outcome.difference)
    assert not comparison.is_worse


def test_false_alarms_of_all_tests_together_stay_below_alpha() -> None:
    runs = 60
    alarms = sum(
        any(
            one.verdict in (Verdict.BETTER, Verdict.WORSE)
            for one in compare(calls(World((40, 40)), run), EVEN).findings
        )
        for run in range(runs)
    )
    assert alarms / runs <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5


def test_a_score_may_be_better_when_it_is_lower() -> None:
    comparison = found(World(score=1.0), rules=Rules(score=Better.LOWER))
    assert by_metric(comparison)["score"].verdict is Verdict.WORSE


def test_arms_of_the_wrong_size_are_not_judged() -> None:
    comparison = found(World((160, 60), slower=2.0))
    assert comparison.is_mismatched
    assert {finding.verdict for finding in comparison.findings} == {Verdict.NOT_JUDGED}
    assert not comparison.is_judged
    assert "v1 160, v2 60 sessions" in comparison.cautions[0]
    weighted = Design("greeting", ("v1", "v2"), {"v1": 160, "v2": 60}, "session")
    assert found(World((160, 60), slower=2.0), weighted).is_judged
    unknown = Design("greeting", ("v1", "v2"), None, "session")
    assert found(World((160, 60)), unknown).split_p is None


def test_too_few_are_not_judged_and_told_how_many_more() -> None:
    comparison = found(World((80, 20)), Design("greeting", ("v1", "v2"), {"v1": 80, "v2": 20}, "session"))
    assert {finding.verdict for finding in comparison.findings} == {Verdict.TOO_FEW}
    assert comparison.findings[0].why == "10 more needed: at least 30 in each arm"
    assert not comparison.is_judged
    with pytest.raises(ExperimentError, match="a comparison needs two"):
        compare(calls(World()), Design("greeting", ("v1",), None, "session"))


def test_an_arm_without_any_request() -> None:
    design = Design("greeting", ("v1", "v3"), None, "session")
    comparison = found(World(), design)
    assert {finding.verdict for finding in comparison.findings} == {Verdict.TOO_FEW}


def test_sessions_with_both_arms_are_left_out_and_told() -> None:
    table = calls(World())
    both = table.filter(pl.col("unit") == "session 0").with_columns(pl.lit("v2").alias("prompt_version"))
    comparison = compare(pl.concat([table, both]), EVEN)
    assert comparison.arms[0].units == 79
    assert comparison.cautions == ("1 sessions had requests of several arms and are left out.",)


def test_arms_at_different_times_are_told() -> None:
    comparison = found(World(later=1e5))
    assert "ran together for 0% of the time" in comparison.cautions[0]


def test_currencies_are_not_mixed() -> None:
    comparison = found(World(currency="USD"))
    assert "money" not in by_metric(comparison)
    assert comparison.cautions == ("Cost is not compared: the logs have CNY, USD.",)


def test_what_a_log_does_not_have_is_left_out() -> None:
    table = calls(World()).with_columns(
        pl.lit(None, pl.Float64).alias("first_token"), pl.lit(None, pl.Float64).alias("score")
    )
    assert set(by_metric(compare(table, EVEN))) == {"hit_rate", "money", "failed", "cut"}


def test_three_arms_share_one_correction() -> None:
    table = calls(World(slower=1.2))
    third = calls(World(), seed=9).filter(pl.col("prompt_version") == "v2")
    third = third.with_columns(
        pl.lit("v3").alias("prompt_version"), pl.format("third {}", "unit").alias("unit")
    )
    design = Design("greeting", ("v1", "v2", "v3"), None, "session")
    comparison = compare(pl.concat([table, third]), design)
    assert len(comparison.findings) == 12
    alone = by_metric(compare(table, EVEN))["first_token"].corrected
    together = comparison.findings[0].corrected
    assert alone is not None
    assert together is not None
    assert together > alone


def test_json_and_page(tmp_path: Path) -> None:
    table = calls(World(slower=2.0))
    comparison = compare(table, EVEN)
    facts = comparison_facts(comparison)
    first = facts["findings"][0]
    assert (first["metric"], first["verdict"], first["test"]) == ("first_token", "worse", "Mann–Whitney U")
    assert first["interval"][0] < first["difference"] < first["interval"][1]
    assert facts["split"]["mismatch"] is False
    write_page(comparison, table, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Mann–Whitney U" in page
    assert "<script src=" not in page
