"""The arena: bytes in are bytes out, copies are apart, memory comes with use."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.base.ids import BlockId
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.format import CacheInput, KvFormat

# Odd sizes on purpose: nothing is a power of two or a multiple of a page.
MIXED = KvFormat(
    8,
    (
        CacheInput("key_cache.0", "bf16", 16, (3, 8, 5)),
        CacheInput("value_cache.0", "u8", 8, (3, 8, 7)),
        CacheInput("key_cache.1", "u4", 4, (2, 8, 3)),
        CacheInput("value_cache.1", "f32", 32, (1, 8, 1)),
    ),
)
SIZE = 240 + 168 + 24 + 32
BLOCK = st.integers(0, 4).map(BlockId)


def pattern(seed: int) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, SIZE, dtype=np.uint8).tobytes()


def test_regions_follow_the_format() -> None:
    arena = BlockArena(MIXED, 5)
    assert [buffer.shape for buffer in arena.buffers] == [(5, 240), (5, 168), (5, 24), (5, 32)]
    assert arena.limit_bytes == 5 * SIZE
    assert all(buffer.flags.c_contiguous and buffer.flags.writeable for buffer in arena.buffers)


def test_untouched_blocks_read_as_zeros() -> None:
    assert BlockArena(MIXED, 5).read(BlockId(3)) == bytes(SIZE)


def test_read_gives_the_tensors_in_order() -> None:
    arena = BlockArena(MIXED, 5)
    for number, buffer in enumerate(arena.buffers):
        buffer[2] = number + 1
    assert arena.read(BlockId(2)) == b"\1" * 240 + b"\2" * 168 + b"\3" * 24 + b"\4" * 32


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.booleans(), BLOCK, BLOCK, st.integers(0, 99)), max_size=20))
def test_blocks_hold_what_was_last_put_there(steps: list[tuple[bool, BlockId, BlockId, int]]) -> None:
    arena = BlockArena(MIXED, 5)
    twin = [bytes(SIZE)] * 5
    for is_copy, source, target, seed in steps:
        if is_copy:
            arena.copy(source, target)
            twin[target] = twin[source]
        else:
            arena.write(target, pattern(seed))
            twin[target] = pattern(seed)
        assert [arena.read(BlockId(block)) for block in range(5)] == twin


def test_a_copy_is_independent() -> None:
    arena = BlockArena(MIXED, 5)
    arena.write(BlockId(0), pattern(1))
    arena.copy(BlockId(0), BlockId(4))
    arena.write(BlockId(0), pattern(2))
    assert arena.read(BlockId(4)) == pattern(1)
    arena.buffers[0][4, 0] ^= 255
    assert arena.read(BlockId(0)) == pattern(2)


def test_what_was_read_does_not_change_later() -> None:
    arena = BlockArena(MIXED, 5)
    arena.write(BlockId(1), pattern(1))
    data = arena.read(BlockId(1))
    arena.write(BlockId(1), pattern(2))
    assert data == pattern(1)


@pytest.mark.parametrize("size", [0, SIZE - 1, SIZE + 1])
def test_writing_another_size_is_refused(size: int) -> None:
    arena = BlockArena(MIXED, 5)
    with pytest.raises(ValueError, match=f"{SIZE} bytes, not {size}"):
        arena.write(BlockId(0), bytes(size))
    assert arena.read(BlockId(0)) == bytes(SIZE)


def test_no_block_lies_beyond_the_limit() -> None:
    arena = BlockArena(MIXED, 5)
    with pytest.raises(IndexError):
        arena.write(BlockId(5), pattern(1))
    with pytest.raises(IndexError):
        arena.copy(BlockId(0), BlockId(5))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * mmap.PAGESIZE


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
def test_memory_comes_with_use() -> None:
    """4 GiB of arena cost next to nothing until blocks are used, and then what the blocks hold."""
    blocks, size = 65536, 65536
    wide = KvFormat(32, (CacheInput("key_cache.0", "u8", 8, (size,)),))
    before = resident_bytes()
    arena = BlockArena(wide, blocks)
    reserved = resident_bytes() - before
    assert reserved < 2 * 2**20
    used = blocks // 100
    data = b"\1" * size
    for block in range(used):
        arena.write(BlockId(block), data)
    grown = resident_bytes() - before
    assert used * size <= grown + 2**20
    assert grown <= used * size + 8 * 2**20
    # Using the same blocks again costs nothing more.
    for block in range(used):
        arena.copy(BlockId(used - 1 - block), BlockId(block))
    assert resident_bytes() - before <= grown + 2**20
