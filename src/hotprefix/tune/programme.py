"""What is worth measuring on a machine."""

from __future__ import annotations

from hotprefix.tune.candidate import precisions_for
from hotprefix.tune.kv_bytes import BLOCK
from hotprefix.tune.machine import Machine
from hotprefix.tune.presets import preset_for
from hotprefix.tune.speed import Programme

_CHUNKS = (128, 256, 512, 1024)
_QUICK_CHUNKS = (256, 512)
_PROMPT, _QUICK_PROMPT = 1024, 512


def full_programme(machine: Machine, context: int) -> Programme:
    """All precisions, four chunk sizes, one thread, half and all of the cores."""
    cores = machine.cores.usable
    threads = dict.fromkeys((cores, cores // 2 if cores >= 4 else 1, 1))
    prompt = _prompt(_PROMPT, context)
    chunks = _chunks(_CHUNKS, machine, prompt)
    return Programme(precisions_for(machine.processor), chunks, tuple(threads), prompt)


def quick_programme(machine: Machine, context: int) -> Programme:
    """16 and 8 bits, the presets' chunk sizes, one thread and all cores; everything once."""
    processor, cores = machine.processor, machine.cores.usable
    prompt = _prompt(_QUICK_PROMPT, context)
    chunks = _chunks(_QUICK_CHUNKS, machine, prompt)
    threads = tuple(dict.fromkeys((cores, 1)))
    return Programme((processor.sixteen_bit, "u8"), chunks, threads, prompt, steps=8, repeats=1)


def _prompt(most: int, context: int) -> int:
    return max(BLOCK, min(most, context // 2 // BLOCK * BLOCK))


def _chunks(wanted: tuple[int, ...], machine: Machine, prompt: int) -> tuple[int, ...]:
    """The preset's first: with it precisions and threads are compared."""
    chunks = dict.fromkeys((preset_for(machine).chunk, *wanted))
    return tuple(chunk for chunk in chunks if chunk <= prompt) or (prompt,)
