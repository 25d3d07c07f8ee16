"""Fleets against what queueing theory says, and what they do with caches."""

from __future__ import annotations

from math import factorial
from pathlib import Path
from random import Random

import numpy as np
import pytest

from hotprefix.doctor.plan.fleet import Fleet, FleetOutcome, FleetSettings
from hotprefix.doctor.plan.load import Load
from hotprefix.doctor.plan.service import ServiceTimes
from hotprefix.traces.latency import SpeedModel
from hotprefix.traces.routing import Routing
from tests.doctor.plan.traces import BLOCK, Line, apps, load, poisson


def times(computed: float, fixed: float = 0.0, found: float = 0.0) -> ServiceTimes:
    return ServiceTimes(SpeedModel(fixed, computed, 0.0, found), 0.0, {})


def run(given: Load, settings: FleetSettings, service: ServiceTimes) -> FleetOutcome:
    fleet = Fleet(settings, given.source.block_size, service, given.survey.requests)
    for request in given.requests():
        fleet.serve(request)
    return fleet.outcome()


def settings(replicas: int = 1, capacity: int = 1_000, **more: object) -> FleetSettings:
    return FleetSettings(replicas, capacity, Routing.ROUND_ROBIN, **more)  # type: ignore[arg-type]


def test_one_server_of_equal_work_waits_as_pollaczek_and_khinchine_say(tmp_path: Path) -> None:
    given = load(tmp_path / "t.jsonl", poisson(15_000), 1.0)
    for busy in (0.3, 0.6):
        outcome = run(given, settings(), times(busy / BLOCK))
        assert outcome.busy == pytest.approx(busy, rel=0.02)
        assert outcome.waits.mean() == pytest.approx(busy * busy / (2 * (1 - busy)), rel=0.12)
        assert np.allclose(outcome.works, busy)


def exponential(count: int, mean: int) -> list[Line]:
    """Poisson arrivals with exponential lengths."""
    random, now, lines = Random(3), 0.0, []
    for number in range(count):
        now += random.expovariate(1.0)
        length = max(1, round(random.expovariate(1 / mean)))
        lines.append((now, length, 0, [number * 100_000 + place for place in range(-(-length // BLOCK))]))
    return lines


def test_several_servers_wait_as_erlang_says(tmp_path: Path) -> None:
    servers, busy = 3, 0.7
    given = load(tmp_path / "t.jsonl", exponential(12_000, 200), 1.0)
    outcome = run(given, settings(servers=servers), times(servers * busy / 200))
    offered = servers * busy
    last = offered**servers / factorial(servers) / (1 - busy)
    waiting = last / (sum(offered**k / factorial(k) for k in range(servers)) + last)
    expected = waiting * servers * busy / (servers * (1 - busy))
    assert outcome.waits.mean() == pytest.approx(expected, rel=0.18)
    assert np.mean(outcome.waits > 0) == pytest.approx(waiting, rel=0.08)


def test_what_the_cache_finds_is_not_computed(tmp_path: Path) -> None:
    given = load(tmp_path / "t.jsonl", apps(600, prompts=4, blocks=10), 1.0)
    large = run(given, settings(capacity=10_000), times(0.001, fixed=0.5, found=0.0001))
    assert large.hit_rate == pytest.approx(10 / 11)
    assert np.allclose(large.works, 0.5 + 16 * 0.001 + 160 * 0.0001)
    small = run(given, settings(capacity=11), times(0.001, fixed=0.5, found=0.0001))
    assert small.hit_rate < 0.4
    assert small.computed > 2 * large.computed


def test_routing_by_prefix_keeps_prompts_together(tmp_path: Path) -> None:
    given = load(tmp_path / "t.jsonl", apps(1_500, prompts=12, blocks=20), 4.0)
    outcomes = {
        routing: run(given, FleetSettings(4, 100, routing), times(0.0005))
        for routing in (Routing.AFFINITY, Routing.ROUND_ROBIN)
    }
    assert outcomes[Routing.AFFINITY].hit_rate > outcomes[Routing.ROUND_ROBIN].hit_rate + 0.2


def test_answers_slow_prompts_down_by_their_share(tmp_path: Path) -> None:
    given = load(tmp_path / "t.jsonl", poisson(300), 1.0)
    alone = run(given, settings(is_unqueued=True), times(0.01))
    beside = run(given, settings(is_unqueued=True, answering=0.75), times(0.01))
    assert np.allclose(beside.works, 4 * alone.works)
    assert beside.busy == pytest.approx(alone.busy + 0.75)
    assert not beside.waits.any()


def test_the_first_requests_fill_the_cache_and_are_not_judged(tmp_path: Path) -> None:
    lines = [(float(n), 10 * BLOCK, 0, list(range(10))) for n in range(200)]
    given = load(tmp_path / "t.jsonl", lines, 1.0)
    judged = run(given, settings(warmup=0.1), times(0.01))
    assert len(judged.waits) == 180
    assert judged.hit_rate == 1.0
    assert run(given, settings(warmup=0.0), times(0.01)).hit_rate == pytest.approx(199 / 200)


def test_a_lifetime_forgets(tmp_path: Path) -> None:
    lines = [(float(100 * n), 10 * BLOCK, 0, list(range(10))) for n in range(200)]
    given = load(tmp_path / "t.jsonl", lines, 0.01)
    assert run(given, settings(lifetime=99.0), times(0.01)).hit_rate == 0
    assert run(given, settings(lifetime=101.0), times(0.01)).hit_rate == 1
