"""KV on its way through a codec: the arena's blocks → 16-bit words → payloads → words → blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.base import Block, BlockCodec
from hotprefix.pages.codecs.floats import narrow, widen
from hotprefix.pages.format import CacheInput, KvFormat

Buffers = Sequence[NDArray[np.uint8]]
"""For every cache tensor its blocks, [blocks, block bytes]."""


class Stored(NamedTuple):
    """What came back from a store, and the bytes that lay in it."""

    blocks: NDArray[np.uint8]
    size: int


def to_words(buffers: Buffers, kv_format: KvFormat, words: KvFormat) -> NDArray[np.uint8]:
    """Blocks [blocks, block bytes] in the format `words`, as a server on this machine would hold them."""
    parts = [
        _converted(buffer, source, target)
        for buffer, source, target in zip(buffers, kv_format.inputs, words.inputs, strict=True)
    ]
    return np.concatenate(parts, axis=1)


def from_words(blocks: NDArray[np.uint8], kv_format: KvFormat, words: KvFormat) -> Buffers:
    """Undo `to_words`."""
    ends = np.cumsum([cache.block_bytes for cache in words.inputs])[:-1]
    return [
        _converted(np.ascontiguousarray(part), source, target)
        for part, source, target in zip(
            np.split(blocks, ends, axis=1), words.inputs, kv_format.inputs, strict=True
        )
    ]


def through(codec: BlockCodec, blocks: NDArray[np.uint8], slots: int, tokens: int) -> Stored:
    """Encode and decode the blocks of a sequence of `tokens` tokens."""
    out = np.empty_like(blocks)
    size = 0
    for number, block in enumerate(blocks):
        position = number * slots
        count = min(slots, tokens - position)
        payload = codec.encode(block, position, count)
        codec.decode(payload, position, count, out[number])
        size += len(payload)
    return Stored(out, size)


def with_last_bits_flipped(blocks: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The least change that a store of 16-bit words could make: each value to a neighbour."""
    flipped: NDArray[np.uint8] = (blocks.view(np.uint16) ^ np.uint16(1)).view(np.uint8)
    return flipped


def _converted(buffer: NDArray[np.uint8], source: CacheInput, target: CacheInput) -> Block:
    if source.element_type == target.element_type:
        return buffer
    values = np.empty((len(buffer), buffer.shape[1] * 8 // source.bits), np.float32)
    widen(buffer.view(f"u{source.bits // 8}"), source.element_type, values)
    out = np.empty(values.shape, f"u{target.bits // 8}")
    narrow(values, target.element_type, out)
    return out.view(np.uint8)
