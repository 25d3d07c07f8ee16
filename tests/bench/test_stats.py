"""Statistics, workload and environment."""

from __future__ import annotations

import numpy as np
import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Target
from hotprefix.bench.stats import bootstrap_median, interval_of_mean, saved_percent
from hotprefix.bench.style import number, verdict
from hotprefix.bench.workload import Workload


def test_bootstrap_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(100):
        low, high = bootstrap_median(rng.normal(loc=5, size=60).tolist(), seed)
        covered += low <= 5 <= high
    assert 88 <= covered <= 100


def test_bootstrap_interval_narrows_with_more_values() -> None:
    rng = np.random.default_rng(1)
    few = bootstrap_median(rng.normal(size=20).tolist(), 0)
    many = bootstrap_median(rng.normal(size=2000).tolist(), 0)
    assert many[1] - many[0] < (few[1] - few[0]) / 3


def test_the_interval_of_a_mean_is_student_s() -> None:
    low, high = interval_of_mean([1.0, 2.0, 3.0], 0)
    assert (low, high) == (pytest.approx(2 - 2.484, abs=0.02), pytest.approx(2 + 2.484, abs=0.02))


def test_bootstrap_of_one_value() -> None:
    assert bootstrap_median([3.0], 0) == (3.0, 3.0)


def test_saved_percent() -> None:
    assert saved_percent(10, 2.5) == 75
    assert saved_percent(10, 11) == pytest.approx(-10)


def test_workload_repeats_for_a_seed_and_stays_in_range() -> None:
    first, again, other = Workload(1, 500), Workload(1, 500), Workload(2, 500)
    ids = first.ids(2000)
    assert ids == again.ids(2000) != other.ids(2000)
    assert min(ids) >= 100
    assert max(ids) < 500
    assert len(first.words(17).split()) == 17
    assert {first.length(4) for _ in range(100)} == {2, 3, 4}


def test_environment_names_machine_and_versions() -> None:
    environment = read_environment(ManualClock(1_700_000_000))
    assert environment.date == "2023-11-14 22:13 UTC"
    assert environment.cpu
    assert environment.cores >= 1
    assert f"numpy {np.__version__}" in environment.line()


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(0.0000123, "s", "12 µs"), (0.0123, "s", "12.3 ms"), (1.5, "s", "1.50 s"), (0.5, "%", "0.50 %")],
)
def test_numbers_for_people(value: float, unit: str, text: str) -> None:
    assert number(value, unit) == text


@pytest.mark.parametrize(
    ("value", "bound", "met", "mark"),
    [
        (1.0, Bound.AT_MOST, True, "✓"),
        (1.01, Bound.AT_MOST, False, "✗"),
        (1.0, Bound.AT_LEAST, True, "✓"),
        (0.99, Bound.AT_LEAST, False, "✗"),
        (None, Bound.AT_MOST, None, "–"),
    ],
)
def test_targets(value: float | None, bound: Bound, met: bool | None, mark: str) -> None:
    target = Target("t", "", value, bound, 1.0)
    assert target.met is met
    assert verdict(target).startswith(mark)
