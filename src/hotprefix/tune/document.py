"""A plan or a launch line as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hotprefix.tune.planner import Plan
from hotprefix.tune.vllm.flags import CHECKED_VERSION
from hotprefix.tune.vllm.launch import Launch


def plan_document(plan: Plan) -> dict[str, Any]:
    """Sizes in bytes, lengths in tokens, speeds in tokens/s or bytes/s; null is "not measured"."""
    speeds = asdict(plan.facts.speeds)
    del speeds["kv"]
    return {
        "machine": asdict(plan.facts.machine),
        "model": asdict(plan.facts.model),
        "wish": asdict(plan.wish),
        "need": asdict(plan.need) | {"tokens": plan.need.tokens},
        "preset": asdict(plan.preset),
        "budget": asdict(plan.budget) | {"kv": plan.budget.kv},
        "speeds": speeds,
        "candidates": [asdict(candidate) for candidate in plan.candidates],
        "chosen": plan.chosen.precision,
        "options": {decision.key: decision.value for decision in plan.decisions},
        "decisions": [asdict(decision) for decision in plan.decisions],
        "warnings": list(plan.warnings),
    }


def launch_document(launch: Launch) -> dict[str, Any]:
    """Sizes in bytes on one GPU, tokens over all of them."""
    return {
        "vllm": CHECKED_VERSION,
        "model": asdict(launch.model),
        "layout": asdict(launch.layout),
        "command": launch.command,
        "options": {option.flag.name: option.value for option in launch.options},
        "reasons": {option.flag.name: option.why for option in launch.options},
        "arithmetic": list(launch.arithmetic),
        "warnings": list(launch.warnings),
    }
