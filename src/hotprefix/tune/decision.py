"""One chosen option: its value, why, and on what that rests."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MIB = 1024 * 1024
GIB = 1024 * MIB


class Basis(StrEnum):
    """What a choice rests on: the preset of the machine's size, what was measured, what was asked for, or
    what the machine has."""

    PRESET = "preset"
    MEASURED = "measured"
    ASKED = "asked for"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Decision:
    """`key` and `value` as `hotprefix serve` takes them, without dashes."""

    key: str
    value: str | int
    why: str
    basis: Basis


def written_size(size: int) -> str:
    """A size in whole MiB, rounded down, as `--kv-arena` takes it: `8G`, `1536M`, `0`."""
    mebibytes = size // MIB
    if not mebibytes:
        return "0"
    return f"{mebibytes // 1024}G" if mebibytes % 1024 == 0 else f"{mebibytes}M"


def gib(size: float) -> str:
    """A size for people."""
    return f"{size / GIB:.1f} GiB" if size >= GIB else f"{size / MIB:.0f} MiB"
