"""Moving cached tokens inside the arena, keys turned to their new positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.ids import BlockId
from hotprefix.cache.recut import Places, Recut
from hotprefix.engine.strategy.scorer import Floats
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.codecs.floats import FLOAT_TYPES, Words, narrow, widen, word_type
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary

Turn = tuple[Floats, Floats]
"""Cosines and sines of a move."""

_PIECE = 16
"""Blocks turned at once: they stay in the processor's cache."""


class TokenMover(Protocol):
    """The bytes of cached tokens."""

    def move(self, cut: Recut) -> None:
        """Carry a cut out: put what stays where it belongs, with its keys at their new positions."""
        ...

    def read(self, table: list[BlockId], places: Places) -> tuple[Floats, Floats]:
        """Keys and values of some cached tokens, each [layers, kv heads, tokens, head size]."""
        ...


def why_not_movable(kv: KvFormat) -> str:
    """Why caches of this format can't be cut; empty if they can."""
    kinds = {cache.element_type for cache in kv.inputs}
    if not kinds <= FLOAT_TYPES:
        return (
            f"it moves cached keys, which needs them in 16 or 32 bits, and this server keeps some in "
            f"{', '.join(sorted(kinds - FLOAT_TYPES))} (--kv-precision)"
        )
    shapes = {(cache.name.partition(".")[0], cache.block_shape) for cache in kv.inputs}
    if len(shapes) > 2:
        return "it judges tokens by all layers together, and in this model not all keep the same heads"
    return ""


class _Layer(NamedTuple):
    """Keys and values of a layer: words [blocks, kv heads, block size, head size]."""

    keys: Words
    values: Words
    element_type: str


@dataclass(frozen=True, slots=True)
class _Slots:
    """Where tokens lie: token i in slot `slots[i]` of block `blocks[i]`."""

    blocks: Places
    slots: Places

    @classmethod
    def of(cls, table: NDArray[np.int64], places: Places, size: int) -> _Slots:
        return cls(table[places // size], places % size)


class _Job:
    """A cut as index arrays, the same for all layers.

    Whole blocks that keep their block only have their keys turned (`turned`). What changes its block
    is read first, and then written: whole blocks (`copied`) and single tokens.
    """

    def __init__(self, cut: Recut, size: int, rotary: Rotary) -> None:
        before = np.asarray(cut.before, dtype=np.int64)
        after = np.asarray(cut.after, dtype=np.int64)
        new = np.arange(cut.front * size, len(cut.kept), dtype=np.int64)
        old = cut.kept[new]
        full = len(new) // size * size
        runs, starts = old[:full].reshape(-1, size), new[:full:size]
        is_whole = (runs[:, 0] % size == 0) & (runs[:, -1] - runs[:, 0] == size - 1)
        old_blocks, new_blocks = before[runs[:, 0] // size], after[starts // size]
        shift = starts - runs[:, 0]
        stays = is_whole & (old_blocks == new_blocks)
        moves = is_whole & ~stays
        self.turned = [
            (new_blocks[stays][at : at + _PIECE], _spread(rotary.turn(shift[stays][at : at + _PIECE]), 2))
            for at in range(0, int(stays.sum()), _PIECE)
        ]
        self.copied = old_blocks[moves], new_blocks[moves], _spread(rotary.turn(shift[moves]), 2)
        single = np.ones(len(new), dtype=bool)
        single[:full] = np.repeat(~is_whole, size)
        self.sources = _Slots.of(before, old[single], size)
        self.targets = _Slots.of(after, new[single], size)
        self.token_turn = _spread(rotary.turn(new[single] - old[single]), 1)


def _spread(turn: Turn, axes: int) -> Turn:
    """Cosines and sines to be broadcast over `axes` axes before the last one."""
    where = tuple(range(1, 1 + axes))
    return np.expand_dims(turn[0], where), np.expand_dims(turn[1], where)


class ArenaMover:
    """Moves in one pass a layer: whole arrays are read, turned in float32, and written.

    Raises `ValueError` for an arena whose keys can't be turned; see `why_not_movable`.
    """

    def __init__(self, arena: BlockArena, rotary: Rotary) -> None:
        reason = why_not_movable(arena.format)
        if reason:
            raise ValueError(reason)
        self._rotary = rotary
        self._size = arena.format.block_size
        self._layers = _layers(arena)

    def move(self, cut: Recut) -> None:
        job = _Job(cut, self._size, self._rotary)
        for layer in self._layers:
            self._move_layer(layer, job)

    def read(self, table: list[BlockId], places: Places) -> tuple[Floats, Floats]:
        at = _Slots.of(np.asarray(table, dtype=np.int64), places, self._size)
        keys: list[Floats] = []
        values: list[Floats] = []
        for layer in self._layers:
            for words, out in ((layer.keys, keys), (layer.values, values)):
                out.append(_wide(words[at.blocks, :, at.slots], layer.element_type))
        return np.stack(keys).swapaxes(1, 2), np.stack(values).swapaxes(1, 2)

    def _move_layer(self, layer: _Layer, job: _Job) -> None:
        keys, values, kind = layer
        for blocks, turn in job.turned:
            keys[blocks] = self._turned(keys[blocks], kind, turn)
        old, new = job.sources, job.targets
        old_blocks, new_blocks, block_turn = job.copied
        tokens = self._turned(keys[old.blocks, :, old.slots], kind, job.token_turn)
        token_values = values[old.blocks, :, old.slots]
        copies = self._turned(keys[old_blocks], kind, block_turn)
        copied_values = values[old_blocks]
        keys[new.blocks, :, new.slots] = tokens
        values[new.blocks, :, new.slots] = token_values
        keys[new_blocks] = copies
        values[new_blocks] = copied_values

    def _turned(self, words: Words, element_type: str, turn: Turn) -> Words:
        narrow(self._rotary.turned(_wide(words, element_type), *turn), element_type, words)
        return words


def _wide(words: Words, element_type: str) -> Floats:
    out = np.empty(words.shape, dtype=np.float32)
    widen(words, element_type, out)
    return out


def _layers(arena: BlockArena) -> list[_Layer]:
    found: dict[str, Words] = {}
    kinds: dict[str, str] = {}
    for cache, buffer in zip(arena.format.inputs, arena.buffers, strict=True):
        found[cache.name] = buffer.view(word_type(cache.element_type)).reshape(-1, *cache.block_shape)
        kinds[cache.name] = cache.element_type
    numbers = sorted(int(name.removeprefix("key_cache.")) for name in found if name.startswith("key_cache."))
    return [
        _Layer(found[f"key_cache.{n}"], found[f"value_cache.{n}"], kinds[f"key_cache.{n}"]) for n in numbers
    ]
