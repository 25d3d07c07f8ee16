"""Where keys and values of all layers lie in a block, as few strided arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hotprefix.base.errors import UnsupportedModel
from hotprefix.pages.codecs.base import Block
from hotprefix.pages.codecs.floats import FLOAT_TYPES, Words, word_type
from hotprefix.pages.format import KvFormat

_NAME = re.compile(r"(?:^|[^a-z])(key|value)_cache\.(\d+)$")


@dataclass(frozen=True, slots=True)
class Tensors:
    """Cache tensors of one kind and shape at even distances in a block: keys, or values, of `layers`."""

    is_keys: bool
    layers: tuple[int, ...]
    element_type: str
    heads: int
    slots: int
    head_size: int
    offset: int
    stride: int

    @property
    def word_bytes(self) -> int:
        """Bytes of one value."""
        return np.dtype(word_type(self.element_type)).itemsize

    def view(self, block: Block) -> Words:
        """[layers, heads, slots, head size] over the block's own memory."""
        kind = np.dtype(word_type(self.element_type))
        row = self.head_size * kind.itemsize
        return np.ndarray(
            (len(self.layers), self.heads, self.slots, self.head_size),
            kind,
            block.data,
            self.offset,
            (self.stride, self.slots * row, row, kind.itemsize),
        )


def layer_of(name: str) -> tuple[bool, int]:
    """Whether a cache input holds keys, and its layer, by its name: `key_cache.3` is (True, 3)."""
    found = _NAME.search(name)
    if found is None:
        raise UnsupportedModel(f"a cache input is called {name!r}; expected key_cache.N or value_cache.N")
    return found[1] == "key", int(found[2])


def layer_count(kv_format: KvFormat) -> int:
    """How many layers keep KV."""
    return len({layer_of(cache.name)[1] for cache in kv_format.inputs})


def require_floats(kv_format: KvFormat, codec: str) -> None:
    """Refuse arenas that hold integers already: their scales span a block, so slots can't be told apart."""
    for cache in kv_format.inputs:
        if cache.element_type not in FLOAT_TYPES:
            raise UnsupportedModel(
                f"codec {codec} reads KV in bf16, f16 or f32, and this arena keeps {cache.name} in "
                f"{cache.element_type}: store such blocks with codec raw, or keep the arena in 16 bits"
            )


def tensors_of(kv_format: KvFormat) -> list[Tensors]:
    """Every cache tensor of a format of floats, in as few groups as their places allow."""
    places: dict[tuple[bool, str, tuple[int, ...]], list[tuple[int, int]]] = {}
    offset = 0
    for cache in kv_format.inputs:
        is_keys, layer = layer_of(cache.name)
        places.setdefault((is_keys, cache.element_type, cache.block_shape), []).append((offset, layer))
        offset += cache.block_bytes
    return [
        Tensors(is_keys, tuple(layer for _, layer in run), kind, heads, slots, size, run[0][0], _stride(run))
        for (is_keys, kind, (heads, slots, size)), found in places.items()
        for run in _even_runs(found)
    ]


def split_layers(tensors: Tensors, layers: frozenset[int]) -> Iterator[tuple[Tensors, bool]]:
    """Parts of a group in which all or none of the layers are in `layers`, and which it is."""
    start = 0
    inside = [layer in layers for layer in tensors.layers]
    for end in range(1, len(inside) + 1):
        if end == len(inside) or inside[end] != inside[start]:
            yield (
                Tensors(
                    tensors.is_keys,
                    tensors.layers[start:end],
                    tensors.element_type,
                    tensors.heads,
                    tensors.slots,
                    tensors.head_size,
                    tensors.offset + start * tensors.stride,
                    tensors.stride,
                ),
                inside[start],
            )
            start = end


def _even_runs(places: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    run: list[tuple[int, int]] = []
    for place in places:
        if len(run) > 1 and place[0] - run[-1][0] != run[1][0] - run[0][0]:
            yield run
            run = []
        run.append(place)
    if run:
        yield run


def _stride(run: list[tuple[int, int]]) -> int:
    return run[1][0] - run[0][0] if len(run) > 1 else 0
