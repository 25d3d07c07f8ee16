"""The block arena: virtual memory for all blocks, physical memory only for those in use.

The whole limit is reserved as address space at the start; the kernel backs a page when it is
first written. The arena so grows with use, never moves, and can't pass its limit.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.ids import BlockId
from hotprefix.pages.format import KvFormat

_ALIGN = 2 * 1024 * 1024


class BlockArena:
    """`blocks` blocks of a KV format. One contiguous region for each cache tensor.

    `buffers[i]` is the region of `format.inputs[i]`, uint8 of shape [blocks, block bytes].
    """

    def __init__(self, kv_format: KvFormat, blocks: int) -> None:
        self.format = kv_format
        self.blocks = blocks
        sizes = [cache.block_bytes * blocks for cache in kv_format.inputs]
        offsets = [0]
        for size in sizes:
            offsets.append(offsets[-1] + -(-size // _ALIGN) * _ALIGN)
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        self._memory = mmap.mmap(-1, offsets[-1], flags=flags)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            # A first write to a block costs one page fault instead of hundreds.
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        # Bytes are moved through it: slices of arrays take several times as long to make.
        self._bytes = memoryview(self._memory)
        self._spans = _spans(offsets, [cache.block_bytes for cache in kv_format.inputs])
        whole = np.frombuffer(self._memory, dtype=np.uint8)
        self.buffers: list[NDArray[np.uint8]] = [
            whole[start : start + size].reshape(blocks, -1)
            for start, size in zip(offsets, sizes, strict=False)
        ]

    @property
    def limit_bytes(self) -> int:
        """Bytes that the arena can hold at most."""
        return self.format.block_bytes * self.blocks

    def copy(self, source: BlockId, target: BlockId) -> None:
        """Make the bytes of `target` equal to those of `source`, in every layer."""
        memory = self._bytes
        self._require(source)
        self._require(target)
        for start, _, size in self._spans:
            old, new = start + source * size, start + target * size
            memory[new : new + size] = memory[old : old + size]

    def read(self, block: BlockId) -> bytes:
        """All bytes of a block, tensors in the format's order."""
        return self.snapshot(block).tobytes()

    def snapshot(self, block: BlockId) -> NDArray[np.uint8]:
        """As `read`, into an array of its own."""
        self._require(block)
        data = np.empty(self.format.block_bytes, dtype=np.uint8)
        memory, out = self._bytes, data.data
        for start, offset, size in self._spans:
            place = start + block * size
            out[offset : offset + size] = memory[place : place + size]
        return data

    def write(self, block: BlockId, data: bytes | NDArray[np.uint8]) -> None:
        """Set all bytes of a block; `data` is as `read` or `snapshot` gives it."""
        if len(data) != self.format.block_bytes:
            raise ValueError(f"a block has {self.format.block_bytes} bytes, not {len(data)}")
        self._require(block)
        memory, source = self._bytes, memoryview(data) if isinstance(data, bytes) else data.data
        for start, offset, size in self._spans:
            place = start + block * size
            memory[place : place + size] = source[offset : offset + size]

    def _require(self, block: BlockId) -> None:
        # A slice of bytes would reach into another tensor.
        if not 0 <= block < self.blocks:
            raise IndexError(f"there is no block {block} among {self.blocks}")


def _spans(starts: Sequence[int], sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Of each tensor: where its region begins, where its part of a block does, and its bytes in a block."""
    offsets = accumulate(sizes, initial=0)
    return list(zip(starts, offsets, sizes, strict=False))
