"""Block ↔ record: one deployment's scope, the codec it writes and those it can read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.ids import BlockKey
from hotprefix.pages.codecs.base import BlockCodec
from hotprefix.tiers.base import Record


@dataclass(frozen=True, slots=True)
class Fetched:
    """A block from a tier. `data` uint8 [block bytes], as the arena lays them out; read-only where
    it is still on its way into a tier."""

    key: BlockKey
    position: int
    tokens: int
    data: NDArray[np.uint8]


class BlockStorage:
    """`block_bytes` is a block's size in the arena; `readable` maps names to other codecs whose
    records are still read."""

    def __init__(
        self,
        scope: bytes,
        block_bytes: int,
        codec: BlockCodec,
        readable: Mapping[str, BlockCodec] | None = None,
    ) -> None:
        self.scope = scope
        self.block_bytes = block_bytes
        self._codec = codec
        self._readable = {**(readable or {}), codec.name: codec}

    def encode(self, key: BlockKey, position: int, tokens: int, data: NDArray[np.uint8]) -> Record:
        """The record of a block. Raises `ValueError` if the codec can't keep so many tokens of one."""
        payload = self._codec.encode(data, position, tokens)
        return Record(key, self.scope, self._codec.name, position, tokens, payload)

    def room(self, blocks: int) -> NDArray[np.uint8]:
        """Memory for decoded blocks, uint8 [blocks, block bytes].

        In one piece it is large enough for numpy to ask for huge pages: half the page faults' cost.
        """
        return np.empty((blocks, self.block_bytes), np.uint8)

    def decode(self, key: BlockKey, record: Record, data: NDArray[np.uint8]) -> Fetched | None:
        """The block, in `data`; None if it is another's, of an unknown codec or broken."""
        codec = self._readable.get(record.codec)
        if codec is None or (record.key, record.scope) != (key, self.scope):
            return None
        try:
            codec.decode(record.payload, record.position, record.tokens, data)
        except ValueError:
            # `BrokenPayload`, or a count of tokens that the codec's blocks can't have.
            return None
        return Fetched(key, record.position, record.tokens, data)
