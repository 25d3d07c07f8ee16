"""Traces as loads."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from hotprefix.doctor.plan.errors import PlanError
from hotprefix.doctor.plan.load import load_of
from tests.doctor.plan.traces import BLOCK, apps, load, source_of


def test_the_rate_is_the_one_wished_and_the_pattern_stays(tmp_path: Path) -> None:
    lines = apps(400)
    found = load(tmp_path / "t.jsonl", lines, 8.0)
    times = [request.at for request in found.requests()]
    assert times[0] == 0
    assert (len(times) - 1) / times[-1] == pytest.approx(8.0)
    assert times[200] / times[-1] == pytest.approx(
        (lines[200][0] - lines[0][0]) / (lines[-1][0] - lines[0][0])
    )
    assert found.mean_output == 4


def test_requests_of_one_tick_are_spread_until_the_next(tmp_path: Path) -> None:
    lines = [(float(3 * (n // 10)), BLOCK, 1, [n]) for n in range(200)]
    times = [request.at for request in load(tmp_path / "t.jsonl", lines, 10.0).requests()]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert min(gaps) > 0.09
    assert max(gaps) < 0.12


def test_a_trace_of_one_moment_and_one_that_is_too_short(tmp_path: Path) -> None:
    times = [
        one.at
        for one in load(tmp_path / "t.jsonl", [(5.0, BLOCK, 1, [n]) for n in range(100)], 4.0).requests()
    ]
    assert times == pytest.approx([n / 4 for n in range(100)])
    with pytest.raises(PlanError, match="a percentile needs 100"):
        load_of(source_of(tmp_path / "s.jsonl", apps(99)), 1.0)
