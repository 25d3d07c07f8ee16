"""A provider plan as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hotprefix.doctor.plan.provider.compare import ProviderPlan, StrategyCost


def provider_facts(plan: ProviderPlan) -> dict[str, Any]:
    """Money as text."""
    return {
        "profile": plan.wish.profile.name,
        "model": plan.wish.model,
        "currency": plan.currency,
        "requests": plan.requests,
        "uncached": str(plan.uncached),
        "best": _cost(plan, plan.best),
        "strategies": [_cost(plan, one) for one in plan.costs],
        "notes": list(plan.notes),
    }


def _cost(plan: ProviderPlan, one: StrategyCost) -> dict[str, Any]:
    strategy = one.strategy
    return {
        "mode": strategy.mode.value,
        "markers": strategy.markers,
        "shared_markers": strategy.shared,
        "tail_marker": strategy.has_tail,
        "ttl": strategy.ttl or None,
        "cost": str(one.cost),
        "of_uncached": float(one.cost / plan.uncached) if plan.uncached else None,
        "hit_rate": one.hit_rate,
        "tokens": asdict(one.tokens),
    }
