"""Where the memory goes, and what is left for keys and values."""

from __future__ import annotations

from dataclasses import dataclass

from hotprefix.tune.decision import GIB, MIB, gib
from hotprefix.tune.errors import DoesNotFit
from hotprefix.tune.machine import Machine
from hotprefix.tune.model_facts import ModelFacts
from hotprefix.tune.speed import Speeds

BESIDE = (300 + 64 + 32 + 16) * MIB
"""Python and OpenVINO; kept logits, tokenised texts and answers at their limits."""
_RESERVE = 0.1
_LEAST_RESERVE, _MOST_RESERVE = 512 * MIB, 8 * GIB
_COPIES = 2
"""Of the weights, where the loaded model was not measured: as on disk, and as the processor wants them."""
_LEAST = 64 * MIB


@dataclass(frozen=True, slots=True)
class Budget:
    """Bytes. `reserve` is left to everything else on the machine."""

    total: int
    available: int
    model: int
    beside: int
    reserve: int

    @property
    def kv(self) -> int:
        """For the arena and the RAM tier together."""
        return self.available - self.model - self.beside - self.reserve


def budget_of(machine: Machine, model: ModelFacts, speeds: Speeds) -> Budget:
    """Raises `DoesNotFit` if less than 64 MiB is left for KV."""
    memory = machine.memory
    budget = Budget(
        total=memory.total,
        available=memory.available,
        model=_COPIES * model.weights if speeds.resident is None else speeds.resident,
        beside=BESIDE,
        reserve=int(min(_MOST_RESERVE, max(_LEAST_RESERVE, _RESERVE * memory.total))),
    )
    if budget.kv < _LEAST:
        raise DoesNotFit(
            f"{model.name} leaves no memory for keys and values: of {gib(budget.available)} available, the "
            f"model takes {gib(budget.model)}, the server {gib(budget.beside)}, and {gib(budget.reserve)} "
            "stay free for others. Free some memory, or take a smaller model."
        )
    return budget
