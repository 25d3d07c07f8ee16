"""The rule that holds until something was measured: by the size of the memory alone."""

from __future__ import annotations

from dataclasses import dataclass

from hotprefix.tune.decision import GIB, gib
from hotprefix.tune.machine import Machine

LARGE = 40 * GIB
"""Above it there is room for 16 bits."""


@dataclass(frozen=True, slots=True)
class Preset:
    """`precision` as `--kv-precision`, `chunk` in tokens."""

    precision: str
    chunk: int
    why: str


def preset_for(machine: Machine) -> Preset:
    """Above 40 GiB of memory 16 bits and chunks of 512, else 8 bits and chunks of 256."""
    total = machine.memory.total
    if total > LARGE:
        why = f"preset above {gib(LARGE)} of memory (here {gib(total)})"
        return Preset(machine.processor.sixteen_bit, 512, why)
    return Preset("u8", 256, f"preset up to {gib(LARGE)} of memory (here {gib(total)})")
