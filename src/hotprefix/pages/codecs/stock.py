"""All keys and values of a block as float32, keys as they were before the rotary embedding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotprefix.base.errors import UnsupportedModel
from hotprefix.pages.codecs.base import Block
from hotprefix.pages.codecs.floats import Floats, is_calm, narrow, widen
from hotprefix.pages.codecs.layout import require_floats, tensors_of
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary


@dataclass(frozen=True, slots=True)
class Dimensions:
    """Of the KV of a model whose layers are all alike."""

    layers: int
    heads: int
    head_size: int


class Stock:
    """Reads blocks into arrays [2, layers, kv heads, tokens, head size], keys first, and writes them.

    Raises `UnsupportedModel` for formats that are not of floats and alike in all layers.
    """

    def __init__(self, kv_format: KvFormat, rotary: Rotary | None, codec: str) -> None:
        require_floats(kv_format, codec)
        self._groups = tensors_of(kv_format)
        self._rotary = rotary
        shapes = {(group.heads, group.head_size) for group in self._groups}
        layers = sorted(layer for group in self._groups for layer in group.layers)
        if len(shapes) != 1 or layers != sorted([*range(len(layers) // 2)] * 2):
            raise UnsupportedModel(
                f"codec {codec} wants keys and values of one shape in all layers, which this model does not "
                "have: take codec int8"
            )
        [(heads, size)] = shapes
        self.dimensions = Dimensions(len(layers) // 2, heads, size)

    def read(self, block: Block, position: int, tokens: slice) -> Floats | None:
        """The values of some slots; None if one of them is not finite or not below 2^100."""
        size = self.dimensions
        count = tokens.stop - tokens.start
        out = np.empty((2, size.layers, size.heads, count, size.head_size), np.float32)
        for group in self._groups:
            words = group.view(block)[:, :, tokens]
            if not is_calm(words, group.element_type):
                return None
            part = np.empty(words.shape, np.float32)
            widen(words, group.element_type, part)
            out[0 if group.is_keys else 1, list(group.layers)] = part
        self._turn(out, -self._positions(position, tokens))
        return out

    def write(self, values: Floats, position: int, tokens: slice, block: Block) -> None:
        """Round values into some slots of a block. `values` is used up."""
        self._turn(values, self._positions(position, tokens))
        for group in self._groups:
            part = values[0 if group.is_keys else 1, list(group.layers)]
            narrow(part, group.element_type, group.view(block)[:, :, tokens])

    def words(self, block: Block, tokens: slice) -> list[Block]:
        """The bytes of some slots as they are, one array a group."""
        return [
            np.ascontiguousarray(group.view(block)[:, :, tokens]).reshape(-1).view(np.uint8)
            for group in self._groups
        ]

    def put_words(self, body: Block, tokens: slice, block: Block) -> None:
        """Undo `words`."""
        start = 0
        for group in self._groups:
            target = group.view(block)[:, :, tokens]
            end = start + target.size * target.itemsize
            target[...] = body[start:end].view(target.dtype).reshape(target.shape)
            start = end

    def clear(self, block: Block, tokens: slice) -> None:
        """Make some slots zero."""
        for group in self._groups:
            group.view(block)[:, :, tokens] = 0

    @property
    def token_bytes(self) -> int:
        """Bytes of one token's words."""
        return sum(
            len(group.layers) * group.heads * group.head_size * group.word_bytes for group in self._groups
        )

    @staticmethod
    def _positions(position: int, tokens: slice) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.arange(position + tokens.start, position + tokens.stop, dtype=np.int64)

    def _turn(self, values: Floats, shift: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        if self._rotary is not None:
            values[0] = self._rotary.rotated(values[0], shift)
