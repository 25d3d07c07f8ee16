"""Plans: the cheapest fleet that meets the target, and targets that none meets."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from hotprefix.doctor.plan import workers
from hotprefix.doctor.plan.document import plan_facts
from hotprefix.doctor.plan.errors import PlanError
from hotprefix.doctor.plan.fleet import Fleet, FleetSettings
from hotprefix.doctor.plan.load import Load
from hotprefix.doctor.plan.planner import plan_capacity
from hotprefix.doctor.plan.plot import write_page
from hotprefix.doctor.plan.result import Limit
from hotprefix.doctor.plan.service import ServiceTimes
from hotprefix.doctor.plan.wish import PlanWish, Prices
from hotprefix.doctor.plan.workers import Workers
from hotprefix.traces.latency import SpeedModel
from hotprefix.traces.routing import Routing
from tests.doctor.plan.traces import BLOCK, apps, load

TIMES = ServiceTimes(SpeedModel(0.01, 0.002, 0.0, 0.0), 0.0, {"computed": "given", "answer": "given"})
SMALL, LARGE = 60 * BLOCK, 400 * BLOCK
"""Bytes for 60 and 400 blocks, at a byte a token: the system prompts take 240."""


@pytest.fixture
def given(tmp_path: Path) -> Load:
    """20 requests/s behind 12 system prompts of 320 tokens: 0.69 s without a cache, 0.04 s with one."""
    return load(tmp_path / "t.jsonl", apps(1_200), 20.0)


def wish(target: float = 0.5, **more: object) -> PlanWish:
    return PlanWish(target, (SMALL, LARGE), 1.0, **more)  # type: ignore[arg-type]


def smallest(given: Load, memory: int, routing: Routing, target: float, most: int) -> int | None:
    """By trying them all."""
    good = None
    for replicas in range(most, 0, -1):
        fleet = Fleet(
            FleetSettings(replicas, memory // BLOCK, routing, policy="lru"),
            BLOCK,
            TIMES,
            given.survey.requests,
        )
        for request in given.requests():
            fleet.serve(request)
        outcome = fleet.outcome()
        if outcome.at(0.95) > target or outcome.busy >= 0.98:
            break
        good = replicas
    return good


def test_the_plan_is_the_cheapest_of_all_that_were_tried(given: Load) -> None:
    prices = Prices(Decimal("1.50"), Decimal("0.01"), "EUR")
    plan = plan_capacity(given, wish(most=12, prices=prices), TIMES)
    assert plan.chosen is not None
    options = {
        (memory, routing): smallest(given, memory, routing, 0.5, 12)
        for memory in (SMALL, LARGE)
        for routing in (Routing.AFFINITY, Routing.ROUND_ROBIN)
    }
    costs = {line: prices.of(count, line[0]) for line, count in options.items() if count is not None}
    best = min(costs.values())
    assert plan.cost == best
    assert costs[plan.chosen.memory, plan.chosen.routing] == best
    assert plan.chosen.replicas == options[plan.chosen.memory, plan.chosen.routing]
    assert plan.chosen.time <= 0.5


def test_prices_decide(given: Load) -> None:
    cheap_memory = plan_capacity(given, wish(), TIMES).chosen
    dear = Prices(Decimal(1), Decimal(10) ** 9)
    dear_memory = plan_capacity(given, wish(prices=dear), TIMES).chosen
    assert cheap_memory is not None
    assert dear_memory is not None
    assert cheap_memory.memory == LARGE
    assert dear_memory.memory == SMALL
    assert dear_memory.replicas > cheap_memory.replicas


def test_more_load_takes_more_replicas(tmp_path: Path) -> None:
    counts = []
    for qps in (5.0, 40.0, 160.0):
        plan = plan_capacity(load(tmp_path / f"{qps}.jsonl", apps(1_000), qps), wish(), TIMES)
        assert plan.chosen is not None
        counts.append(plan.chosen.replicas)
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_a_target_below_what_an_idle_server_needs_is_refused_with_what_it_needs(given: Load) -> None:
    plan = plan_capacity(given, wish(target=0.02), TIMES)
    assert plan.chosen is None
    assert plan.refusal is not None
    # 16 tokens of the request's own at 2 ms each and 10 ms: everything else is known.
    assert plan.refusal.reachable == pytest.approx(0.042)
    assert "no number of servers helps" in plan.refusal.why
    assert plan.points == ()
    reachable = plan_capacity(given, wish(target=0.1), TIMES)
    assert reachable.chosen is not None


def test_too_few_replicas_are_refused_with_what_they_reach(given: Load) -> None:
    plan = plan_capacity(given, wish(target=0.05, most=2), TIMES)
    assert plan.refusal is not None
    assert plan.refusal.at is not None
    assert plan.refusal.reachable == plan.refusal.at.time > 0.05
    assert plan.refusal.at.replicas == 2
    assert "--most is 2" in plan.refusal.why
    overloaded = plan_capacity(given, PlanWish(0.5, (SMALL,), 1.0, most=1), TIMES)
    assert overloaded.refusal is not None
    assert "can't keep up with 20 requests a second" in overloaded.refusal.why


def test_what_limits_a_plan(given: Load) -> None:
    queue = plan_capacity(given, PlanWish(0.3, (LARGE,), 1.0), TIMES)
    assert queue.limit is Limit.QUEUE
    assert queue.wait > queue.work
    idle = plan_capacity(given, PlanWish(0.0421, (LARGE,), 1.0, most=200), TIMES)
    assert idle.limit is Limit.COMPUTE
    answers = ServiceTimes(TIMES.prompt, 0.05, {"computed": "given", "answer": "given"})
    assert plan_capacity(given, PlanWish(0.5, (LARGE,), 1.0), answers).limit is Limit.ANSWERS


def test_notes_say_what_was_assumed_and_what_one_less_would_mean(given: Load) -> None:
    assumed = ServiceTimes(
        TIMES.prompt, 0.0005, {"fixed": "assumed", "computed": "given", "answer": "tune.json"}
    )
    plan = plan_capacity(given, wish(), assumed)
    assert plan.chosen is not None
    told = "\n".join(plan.notes)
    assert "Not measured but assumed: fixed" in told
    assert "in a batch it costs less" in told
    assert "With one replica less" in told
    assert any(point.replicas == plan.chosen.replicas - 1 for point in plan.points)


def test_json_and_page(given: Load, tmp_path: Path) -> None:
    plan = plan_capacity(given, wish(), TIMES)
    facts = plan_facts(plan)
    assert facts["chosen"] in facts["points"]
    assert facts["chosen"]["meets"] is True
    assert facts["limit"] in ("queue", "compute", "memory", "answers")
    write_page(plan, "as planned", tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text()
    assert "as planned" in page
    assert "<script src=" not in page


def test_memory_without_a_block(given: Load) -> None:
    with pytest.raises(PlanError, match="hold no block of 16 tokens"):
        plan_capacity(given, PlanWish(0.5, (15,), 1.0), TIMES)
    with pytest.raises(PlanError, match="needs a target"):
        PlanWish(0.5, (), 1.0)


def test_processes_side_by_side_find_the_same(given: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_WORTH", 1)
    alone = plan_capacity(given, wish(most=8), TIMES)
    with Workers(2) as several:
        together = plan_capacity(given, wish(most=8), TIMES, workers=several)
    assert plan_facts(together) == plan_facts(alone)
