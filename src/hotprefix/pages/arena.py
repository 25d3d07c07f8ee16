"""The block arena: virtual memory for all blocks, physical memory only for those in use.

The whole limit is reserved as address space at the start; the kernel backs a page when it is
first written. The arena so grows with use, never moves, and can't pass its limit.
"""

from __future__ import annotations

import mmap

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
        for buffer in self.buffers:
            buffer[target] = buffer[source]

    def read(self, block: BlockId) -> bytes:
        """All bytes of a block, tensors in the format's order."""
        return b"".join(buffer[block].tobytes() for buffer in self.buffers)

    def snapshot(self, block: BlockId) -> NDArray[np.uint8]:
        """As `read`, into an array of its own."""
        out = np.empty(self.format.block_bytes, dtype=np.uint8)
        offset = 0
        for buffer in self.buffers:
            size = buffer.shape[1]
            out[offset : offset + size] = buffer[block]
            offset += size
        return out

    def write(self, block: BlockId, data: bytes | NDArray[np.uint8]) -> None:
        """Set all bytes of a block; `data` is as `read` or `snapshot` gives it."""
        if len(data) != self.format.block_bytes:
            raise ValueError(f"a block has {self.format.block_bytes} bytes, not {len(data)}")
        offset = 0
        for buffer in self.buffers:
            size = buffer.shape[1]
            buffer[block] = np.frombuffer(data, dtype=np.uint8, count=size, offset=offset)
            offset += size
