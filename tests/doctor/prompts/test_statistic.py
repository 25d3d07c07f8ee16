"""The tests that compare arms, against what is known and against themselves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from hotprefix.doctor.prompts.experiment import statistic
from hotprefix.doctor.prompts.experiment.sample import Floats, Ratio
from hotprefix.doctor.prompts.experiment.statistic import (
    Level,
    Outcome,
    detectable,
    holm,
    mean_test,
    rank_test,
    ratio_test,
    share_test,
    split_test,
)

LEVEL = Level()
Draw = Callable[[np.random.Generator, int, float], Ratio]


def plain(values: Floats) -> Ratio:
    return Ratio(values, np.ones(len(values)))


def rates(rng: np.random.Generator, units: int, effect: float) -> Ratio:
    """Hit rates that differ from session to session."""
    below = rng.integers(500, 9_000, units).astype(float)
    each = rng.beta(2 + effect, 2, units)
    return Ratio(np.round(below * each), below)


def costs(rng: np.random.Generator, units: int, effect: float) -> Ratio:
    """Skewed costs of sessions with one to nine requests."""
    below = 1.0 + rng.poisson(2, units)
    return Ratio(below * rng.lognormal(0, 0.8, units) * (1 + effect), below)


def shares(rng: np.random.Generator, units: int, effect: float) -> Ratio:
    """Failures that come in bursts within sessions."""
    below = 1 + rng.poisson(3, units)
    return Ratio(rng.binomial(below, rng.beta(0.8 + effect, 6, units)).astype(float), below.astype(float))


def scores(rng: np.random.Generator, units: int, effect: float) -> Ratio:
    """One score a session."""
    return plain(rng.normal(effect, 1, units))


def test_the_shift_and_its_interval_are_those_of_all_differences() -> None:
    rng = np.random.default_rng(5)
    for arm, control in (
        (rng.exponential(size=41), rng.exponential(size=30)),
        (np.arange(6.0), np.arange(5.0)),
    ):
        pairs = np.sort(np.subtract.outer(arm, control).ravel())
        found = rank_test(arm, control, LEVEL)
        assert found.difference == pytest.approx(np.median(pairs))
        z = stats.norm.ppf(0.975)
        reach = z * np.sqrt(len(pairs) * (len(arm) + len(control) + 1) / 12)
        least = max(0, int(np.floor(len(pairs) / 2 - reach)))
        assert (found.low, found.high) == pytest.approx((pairs[least], pairs[-1 - least]))
        assert found.p == stats.mannwhitneyu(arm, control).pvalue
        assert found.test == "Mann–Whitney U"


def test_welch_where_means_are_normal_and_the_bootstrap_where_not() -> None:
    rng = np.random.default_rng(6)
    arm, control = rng.normal(1, 1, 80), rng.normal(1.4, 1.5, 50)
    found = mean_test(plain(arm), plain(control), LEVEL)
    known = stats.ttest_ind(arm, control, equal_var=False)
    assert found.test == "Welch's t"
    assert (found.p, found.difference) == pytest.approx((known.pvalue, arm.mean() - control.mean()))
    assert (found.low, found.high) == pytest.approx(tuple(known.confidence_interval(0.95)))
    skewed = mean_test(plain(rng.lognormal(0, 1.5, 80)), plain(rng.lognormal(0, 1.5, 50)), LEVEL)
    assert skewed.test == "bootstrap-t by unit"
    several = mean_test(costs(rng, 80, 0), costs(rng, 80, 0), LEVEL)
    assert several.test == "bootstrap-t by unit"


def test_shares_of_independent_requests_are_the_plain_chi_square() -> None:
    arm, control = plain(np.repeat([1.0, 0.0], [30, 170])), plain(np.repeat([1.0, 0.0], [12, 188]))
    found = share_test(arm, control, LEVEL)
    table = [[30, 170], [12, 188]]
    assert found.test == "chi-square"
    assert found.p == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)
    # The example of Newcombe's paper: 56 of 70 against 48 of 80 gives 0.0524 to 0.3339.
    example = share_test(
        plain(np.repeat([1.0, 0.0], [56, 14])), plain(np.repeat([1.0, 0.0], [48, 32])), LEVEL
    )
    assert (example.low, example.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    few = share_test(plain(np.repeat([1.0, 0.0], [3, 57])), plain(np.zeros(60)), LEVEL)
    assert few.test == "Fisher's exact test"
    assert few.p == pytest.approx(stats.fisher_exact([[3, 57], [0, 60]]).pvalue)


def test_requests_that_fail_together_count_for_less() -> None:
    alike = Ratio(np.repeat([4.0, 0.0], [20, 30]), np.full(50, 4.0))
    other = Ratio(np.repeat([4.0, 0.0], [12, 38]), np.full(50, 4.0))
    found = share_test(alike, other, LEVEL)
    assert found.test == "chi-square, by Rao and Scott"
    by_unit = stats.chi2_contingency([[20, 30], [12, 38]], correction=False).pvalue
    assert found.p == pytest.approx(by_unit, rel=0.05)


def test_equal_values_give_no_difference() -> None:
    same = plain(np.ones(40))
    for found in (mean_test(same, same, LEVEL), ratio_test(same, same, LEVEL), share_test(same, same, LEVEL)):
        assert (found.difference, found.p) == (0.0, 1.0)
        assert found.test.startswith("none")


@pytest.mark.parametrize("value", [0.1, 0.0001837, 0.9, 1e9 / 3])
@pytest.mark.parametrize(("units", "others"), [(40, 37), (100, 93), (61, 45), (333, 300)])
@pytest.mark.parametrize("test", [mean_test, ratio_test])
def test_sums_that_round_differently_are_no_difference(
    value: float, units: int, others: int, test: Callable[[Ratio, Ratio, Level], Outcome]
) -> None:
    """Where all requests cost the same, no arm is dearer."""
    found = test(plain(np.full(units, value)), plain(np.full(others, value)), LEVEL)
    assert (found.difference, found.p) == (0.0, 1.0)


@pytest.mark.parametrize("test", [mean_test, ratio_test])
def test_arms_that_differ_while_their_units_do_not(test: Callable[[Ratio, Ratio, Level], Outcome]) -> None:
    """A version that is never read from the cache against one that always is by half."""
    never, half = Ratio(np.zeros(40), np.full(40, 2.0)), Ratio(np.ones(35), np.full(35, 2.0))
    found = test(never, half, LEVEL)
    assert (found.difference, found.low, found.high) == (-0.5, -0.5, -0.5)
    assert found.p == pytest.approx(stats.fisher_exact([[40, 0], [0, 35]]).pvalue)
    assert found.p < 1e-9


def test_a_shift_of_coarse_times_is_one_of_their_steps() -> None:
    """Most pairs are equal: the shift is 0, not a trifle above it, which would make the arm slower."""
    arm, control = np.repeat([0.1, 0.2], [70, 30]), np.repeat([0.1, 0.2], [90, 10])
    found = rank_test(arm, control, LEVEL)
    assert found.p < 0.01
    assert (found.difference, found.low) == (0.0, 0.0)
    assert {found.high} <= {0.0, 0.2 - 0.1}


def test_many_units_use_the_normal_distribution_that_the_bootstrap_comes_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(7)
    arm, control = rates(rng, 900, 0.2), rates(rng, 900, 0)
    drawn = ratio_test(arm, control, LEVEL)
    monkeypatch.setattr(statistic, "_MANY", 500)
    normal = ratio_test(arm, control, LEVEL)
    assert normal.test == "z of the ratio, by unit"
    assert (normal.low, normal.high) == pytest.approx((drawn.low, drawn.high), abs=0.003)


def test_holm_as_published() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


def test_a_split_by_other_weights_shows() -> None:
    assert split_test([510, 490], [0.5, 0.5]) > 0.5
    assert split_test([600, 400], [0.5, 0.5]) < 1e-9


WORLDS: list[tuple[Callable[[Ratio, Ratio, Level], Outcome], Draw, float]] = [
    (ratio_test, rates, 2.0),
    (mean_test, costs, 0.9),
    (mean_test, scores, 0.6),
    (share_test, shares, 1.2),
]


def rejections(test: Callable[[Ratio, Ratio, Level], Outcome], draw: Draw, effect: float, runs: int) -> float:
    found = 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        found += test(draw(rng, 60, effect), draw(rng, 60, 0), Level(seed=run)).p < 0.05
    return found / runs


@pytest.fixture
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistic, "_DRAWS", 600)


@pytest.mark.usefixtures("fewer_draws")
@pytest.mark.parametrize(("test", "draw", "effect"), WORLDS, ids=lambda value: getattr(value, "__name__", ""))
def test_false_alarms_are_as_rare_and_effects_as_often_found_as_promised(
    test: Callable[[Ratio, Ratio, Level], Outcome], draw: Draw, effect: float
) -> None:
    runs = 300
    # 5 % and what three standard deviations of so many runs add to them.
    assert rejections(test, draw, 0, runs) <= 0.05 + 3 * (0.05 * 0.95 / runs) ** 0.5
    assert rejections(test, draw, effect, 100) >= 0.8


def test_the_rank_test_likewise() -> None:
    def share(effect: float, runs: int) -> float:
        found = 0
        for run in range(runs):
            rng = np.random.default_rng(run)
            arm, control = rng.lognormal(0, 0.6, 60) * (1 + effect), rng.lognormal(0, 0.6, 60)
            found += rank_test(arm, control, LEVEL).p < 0.05
        return found / runs

    assert share(0, 400) <= 0.05 + 3 * (0.05 * 0.95 / 400) ** 0.5
    assert share(0.5, 100) >= 0.8


@pytest.mark.usefixtures("fewer_draws")
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    held = 0
    for run in range(300):
        rng = np.random.default_rng(run)
        found = ratio_test(rates(rng, 60, 1.0), rates(rng, 60, 0), Level(seed=run))
        held += found.low <= 0.6 - 0.5 <= found.high
    assert held / 300 >= 0.95 - 3 * (0.05 * 0.95 / 300) ** 0.5


def test_what_would_have_been_found() -> None:
    """80 % of tests find the detectable difference."""
    units, runs = 100, 400
    error = (2 / units) ** 0.5
    effect = detectable(error, 0.05)
    found = 0
    for run in range(runs):
        rng = np.random.default_rng(run)
        found += mean_test(scores(rng, units, effect), scores(rng, units, 0), LEVEL).p < 0.05
    assert 0.74 < found / runs < 0.86
