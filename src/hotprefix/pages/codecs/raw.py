"""The lossless codec: the very bytes of a block's tokens."""

from __future__ import annotations

import numpy as np

from hotprefix.pages.codecs.base import Block
from hotprefix.pages.codecs.frame import HEAD_BYTES, Frame, Kind, require_place, require_size
from hotprefix.pages.format import KvFormat


class RawBody:
    """A block's used slots, tensor by tensor, without a head.

    A tensor of floats gives up its unused slots. One of integers is kept whole, with scales that span
    the block: such blocks are only ever stored full.
    """

    def __init__(self, kv_format: KvFormat) -> None:
        self.slots = kv_format.block_size
        self.block_bytes = kv_format.block_bytes
        self._is_divisible = not kv_format.is_quantised
        self._shapes = [
            (cache.block_shape[0], self.slots, cache.block_bytes // cache.block_shape[0] // self.slots)
            for cache in kv_format.inputs
            if self._is_divisible
        ]

    def size(self, tokens: int) -> int:
        """Bytes of `tokens` tokens."""
        if not self._is_divisible:
            return self.block_bytes
        return self.block_bytes // self.slots * tokens

    def pack(self, block: Block, tokens: int) -> list[memoryview]:
        """The used bytes. Raises `ValueError` for part of a block of integers."""
        if tokens == self.slots:
            return [block.data]
        if not self._is_divisible:
            raise ValueError(f"a block of integers is stored whole, not {tokens} of its {self.slots} tokens")
        return [np.ascontiguousarray(part[:, :tokens]).data for part in self._parts(block)]

    def unpack(self, body: Block, tokens: int, out: Block) -> None:
        """Fill `out`; unused slots become zero. `body` has `size(tokens)` bytes."""
        if tokens == self.slots or not self._is_divisible:
            out[:] = body
            return
        start = 0
        for part in self._parts(out):
            used = part[:, :tokens]
            used[...] = body[start : start + used.size].reshape(used.shape)
            part[:, tokens:] = 0
            start += used.size

    def _parts(self, block: Block) -> list[Block]:
        parts, start = [], 0
        for shape in self._shapes:
            size = shape[0] * shape[1] * shape[2]
            parts.append(block[start : start + size].reshape(shape))
            start += size
        return parts


class RawCodec:
    """Keeps every bit. Any format; the error bound is zero."""

    name = "raw"
    is_lossless = True

    def __init__(self, kv_format: KvFormat) -> None:
        self._body = RawBody(kv_format)
        self._frame = Frame(f"raw/{kv_format.describe()}".encode())
        self.block_bytes = HEAD_BYTES + kv_format.block_bytes

    def encode(self, block: Block, position: int, tokens: int) -> bytes:
        require_place(position, tokens, self._body.slots)
        return b"".join([self._frame.head(Kind.RAW, position, tokens), *self._body.pack(block, tokens)])

    def decode(self, payload: bytes, position: int, tokens: int, out: Block) -> None:
        require_place(position, tokens, self._body.slots)
        self._frame.kind(payload, position, tokens)
        require_size(payload, HEAD_BYTES + self._body.size(tokens))
        self._body.unpack(np.frombuffer(payload, np.uint8, offset=HEAD_BYTES), tokens, out)
