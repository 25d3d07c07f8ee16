"""Made-up machines, models and measurements."""

from __future__ import annotations

from dataclasses import replace

from hotprefix.tune.decision import GIB
from hotprefix.tune.kv_bytes import KvShape
from hotprefix.tune.machine import Cores, Disk, Machine, Memory, Processor
from hotprefix.tune.model_facts import ModelFacts
from hotprefix.tune.planner import Facts, Plan, plan
from hotprefix.tune.quality_notes import QualityNotes
from hotprefix.tune.speed import Speed, Speeds
from hotprefix.tune.wish import Goal, Wish

MODEL = ModelFacts("small", KvShape(30, 3, 64), context=8192, weights=GIB)
"""23,040 bytes a token in 16 bits, 13,680 in 8, 7,920 in 4."""


def machine(size: float = 24, available: float | None = None, **more: object) -> Machine:
    """`size` GiB of memory, all of it available unless told otherwise, eight cores, a disk with 100 GiB."""
    total = int(size * GIB)
    found = Machine(
        memory=Memory(total, total if available is None else int(available * GIB)),
        cores=Cores(8, 8),
        processor=Processor("made up", "bf16"),
        disk=Disk("/state", 100 * GIB),
    )
    return replace(found, **more)  # type: ignore[arg-type]


def speeds(
    by_precision: dict[str, tuple[float, float]],
    by_chunk: dict[int, float] | None = None,
    by_threads: dict[int, tuple[float, float]] | None = None,
    **more: object,
) -> Speeds:
    """Speeds from pairs of prefill and decode, tokens/s."""
    return Speeds(
        by_precision={name: Speed(*pair) for name, pair in by_precision.items()},
        by_threads={count: Speed(*pair) for count, pair in (by_threads or {}).items()},
        prefill_by_chunk=by_chunk or {},
        **more,  # type: ignore[arg-type]
    )


def planned(
    found: Machine,
    *,
    goal: Goal = Goal.BALANCED,
    context: int | None = None,
    concurrency: int = 4,
    measured: Speeds | None = None,
    model: ModelFacts = MODEL,
    notes: QualityNotes | None = None,
) -> Plan:
    facts = Facts(found, model, measured or Speeds(), notes or QualityNotes())
    return plan(facts, Wish(goal, context, concurrency))


def options(found: Plan) -> dict[str, str | int]:
    return {decision.key: decision.value for decision in found.decisions}


def basis(found: Plan, key: str) -> str:
    return next(decision.basis.value for decision in found.decisions if decision.key == key)


def why(found: Plan, key: str) -> str:
    return next(decision.why for decision in found.decisions if decision.key == key)
