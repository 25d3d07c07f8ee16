"""From a load and a wish to a plan."""

from __future__ import annotations

from collections.abc import Callable

from hotprefix.doctor.plan.fleet import FleetOutcome
from hotprefix.doctor.plan.load import Load
from hotprefix.doctor.plan.result import CapacityPlan, Limit, Refusal
from hotprefix.doctor.plan.search import Point, Search
from hotprefix.doctor.plan.service import ServiceTimes
from hotprefix.doctor.plan.wish import PlanWish
from hotprefix.doctor.plan.words import seconds, size
from hotprefix.doctor.plan.workers import Workers
from hotprefix.traces.lines import Advance, nothing

_HALF = 0.5
_WORTH = 0.02
"""Share of the prompt tokens that more memory has to find to be worth a word."""


def plan_capacity(
    load: Load,
    wish: PlanWish,
    times: ServiceTimes,
    advance: Advance = nothing,
    told: Callable[[int], object] = lambda _: None,
    workers: Workers | None = None,
) -> CapacityPlan:
    """The cheapest fleet that meets the target, or why none does. Raises `BrokenTrace` and `PlanError`."""
    search = Search(load, wish, times, advance, told, workers)
    ideal = search.ideal()
    best = ideal.at(wish.share)
    if best > wish.target:
        why = (
            f"{100 * (1 - wish.share):.3g}% of the requests have so much to compute that they take "
            f"{seconds(best)} or more on an idle server that forgets nothing: no number of servers helps, "
            "only faster ones or shorter prompts."
        )
        return _plan(search, ideal, None, Refusal(why, best, None))
    search.run()
    chosen = search.best()
    if chosen is not None:
        if chosen.replicas > 1:  # to say what one less would mean
            search.simulate(chosen.memory, chosen.routing, chosen.replicas - 1)
        return _plan(search, ideal, chosen, None)
    fastest = search.fastest()
    why = (
        f"{fastest.replicas} replicas with {size(fastest.memory)} each do not reach it, and --most is "
        f"{wish.most}."
    )
    if not any(point.is_stable for point in search.points.values()):
        why = f"{wish.most} replicas can't keep up with {load.qps:g} requests a second at all: raise --most."
    return _plan(search, ideal, None, Refusal(why, fastest.time, fastest))


def _plan(search: Search, ideal: FleetOutcome, chosen: Point | None, refusal: Refusal | None) -> CapacityPlan:
    seen = chosen or (refusal.at if refusal is not None else None)
    wait, work = (seen.outcome if seen is not None else ideal).slowest(search.wish.share)
    points = sorted(search.points.values(), key=lambda one: (one.memory, one.routing, one.replicas))
    return CapacityPlan(
        search.load,
        search.wish,
        search.times,
        ideal,
        tuple(points),
        chosen,
        refusal,
        _limit(search, seen, wait, work) if seen is not None else Limit.COMPUTE,
        wait,
        work,
        tuple(_notes(search, chosen)),
    )


def _limit(search: Search, point: Point, wait: float, work: float) -> Limit:
    answering = point.outcome.settings.answering
    if answering > _HALF * point.outcome.busy:
        return Limit.ANSWERS
    if wait > work:
        return Limit.QUEUE
    found = max(one.outcome.hit_rate for one in search.points.values())
    return Limit.MEMORY if found - point.outcome.hit_rate > _WORTH else Limit.COMPUTE


def _notes(search: Search, chosen: Point | None) -> list[str]:
    load, times = search.load, search.times
    told = []
    assumed = [name for name, source in times.sources.items() if source == "assumed"]
    if assumed:
        told.append(
            f"Not measured but assumed: {', '.join(assumed)}. Give --measured, or options of that name."
        )
    if times.sources.get("answer") != "given" and load.mean_output > 1:
        told.append(
            f"A token of an answer is taken to cost {seconds(times.answer)} of a server's time, as it does "
            "alone; in a batch it costs less: --answer says how much."
        )
    if not load.source.has_identity:
        told.append(
            "The trace does not say which prompts are alike: only what --shared-tokens says is found."
        )
    if chosen is None:
        return told
    fewer = search.points.get((chosen.memory, chosen.routing, chosen.replicas - 1))
    if fewer is not None:
        state = f"{seconds(fewer.time)}" if fewer.is_stable else "a queue without end"
        told.append(f"With one replica less: {state}.")
    for memory in search.wish.memories:
        other = search.points.get((memory, chosen.routing, chosen.replicas))
        if memory != chosen.memory and other is not None:
            told.append(
                f"As many replicas with {size(memory)}: {seconds(other.time)}, "
                f"{other.outcome.hit_rate:.1%} found."
            )
    return told
