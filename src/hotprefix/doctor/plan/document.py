"""A plan as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hotprefix.doctor.plan.result import CapacityPlan
from hotprefix.doctor.plan.search import Point


def plan_facts(plan: CapacityPlan) -> dict[str, Any]:
    """Times in seconds, sizes in bytes, rates a second; money as text."""
    wish, load, chosen, refusal = plan.wish, plan.load, plan.chosen, plan.refusal
    return {
        "trace": {
            "files": len(load.source.files),
            "format": load.source.names,
            "block": load.source.block_size,
            **asdict(load.survey),
        },
        "qps": load.qps,
        "target": {"share": wish.share, "seconds": wish.target},
        "service": {
            **asdict(plan.times.prompt),
            "answer": plan.times.answer,
            "sources": dict(plan.times.sources),
        },
        "servers": wish.servers,
        "bytes_per_token": wish.bytes_per_token,
        "prices": {
            "replica": str(wish.prices.replica),
            "gib": str(wish.prices.gib),
            "currency": wish.prices.currency,
        },
        "ideal": {"seconds": plan.ideal.at(wish.share), "hit_rate": plan.ideal.hit_rate},
        "points": [_point(plan, point) for point in plan.points],
        "chosen": None if chosen is None else _point(plan, chosen),
        "refusal": None
        if refusal is None
        else {
            "why": refusal.why,
            "reachable_seconds": refusal.reachable,
            "at": None if refusal.at is None else _point(plan, refusal.at),
        },
        "limit": None if plan.limit is None else plan.limit.name.lower(),
        "slowest": {"wait": plan.wait, "work": plan.work},
        "notes": list(plan.notes),
    }


def _point(plan: CapacityPlan, point: Point) -> dict[str, Any]:
    outcome = point.outcome
    return {
        "memory": point.memory,
        "routing": point.routing.value,
        "replicas": point.replicas,
        "seconds": point.time,
        "p50": outcome.at(0.5),
        "p99": outcome.at(0.99),
        "hit_rate": outcome.hit_rate,
        "busy": outcome.busy,
        "computed_per_second": outcome.computed,
        "keeps_up": point.is_stable,
        "meets": point.is_stable and point.time <= plan.wish.target,
        "cost": str(plan.wish.prices.of(point.replicas, point.memory)),
    }
