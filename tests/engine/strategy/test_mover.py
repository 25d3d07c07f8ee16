"""Tokens move inside the arena, and their keys turn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.cache.base import Room
from hotprefix.cache.holding import Holding
from hotprefix.cache.recut import RecutPlan
from hotprefix.cache.rules import ReuseRules
from hotprefix.cache.uncached import UncachedCache
from hotprefix.engine.strategy.mover import ArenaMover, why_not_movable
from hotprefix.keys.chain import TokenHistory
from hotprefix.kv.pool import BlockPool
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.codecs.floats import narrow
from hotprefix.pages.format import CacheInput, KvFormat
from hotprefix.pages.rotary import Rotary

SIZE, HEADS, HEAD = 8, 2, 16
BITS = {"f32": 32, "f16": 16, "bf16": 16}
BOUND = {"f32": 1e-5, "f16": 2.0**-9, "bf16": 2.0**-6}


def arena_of(kind: str, blocks: int, layers: int = 2) -> BlockArena:
    inputs = [
        CacheInput(f"{what}_cache.{layer}", kind, BITS[kind], (HEADS, SIZE, HEAD))
        for layer in range(layers)
        for what in ("key", "value")
    ]
    return BlockArena(KvFormat(SIZE, tuple(inputs)), blocks)


def rotary(is_half_split: bool = True, dimensions: int = HEAD) -> Rotary:
    return Rotary(100.0 ** (-np.arange(dimensions // 2) * 2 / dimensions), is_half_split)


class Cached:
    """A sequence of `tokens` tokens with random keys and values, written at their positions."""

    def __init__(self, kind: str, tokens: int, turn: Rotary) -> None:
        blocks = -(-tokens // SIZE)
        self.kind = kind
        self.turn = turn
        self.arena = arena_of(kind, blocks + 4)
        self.mover = ArenaMover(self.arena, turn)
        random = np.random.default_rng(tokens)
        self.plain, self.values = random.standard_normal((2, 2, HEADS, tokens, HEAD)).astype(np.float32)
        pool = BlockPool(blocks + 4)
        self.cache = UncachedCache(pool, ReuseRules(SIZE))
        history = TokenHistory(BlockKey(b"r" * 32), range(tokens), SIZE)
        holding = self.cache.open(history, self.cache.plan(history, Room(tokens, tokens)))
        assert holding is not None
        holding.computed = tokens
        self.holding = holding
        keys = turn.rotated(self.plain, np.arange(tokens))
        for layer in range(2):
            for token in range(tokens):
                self._write(2 * layer, token, keys[layer, :, token])
                self._write(2 * layer + 1, token, self.values[layer, :, token])

    def _write(self, tensor: int, token: int, values: np.ndarray) -> None:
        words = self.arena.buffers[tensor].view(np.uint32 if self.kind == "f32" else np.uint16)
        block = words.reshape(-1, HEADS, SIZE, HEAD)[self.holding.table[token // SIZE]]
        out = np.empty(values.shape, dtype=words.dtype)
        narrow(values.copy(), self.kind, out)
        block[:, token % SIZE] = out

    def check(self, kept: np.ndarray) -> None:
        """Every token that stayed has its value, and its key at its new position."""
        keys, values = self.mover.read(self.holding.table, np.arange(len(kept)))
        wanted = self.turn.rotated(self.plain[:, :, kept], np.arange(len(kept)))
        largest = np.abs(self.plain).max()
        assert np.abs(keys - wanted).max() <= BOUND[self.kind] * largest
        assert np.abs(values - self.values[:, :, kept]).max() <= BOUND[self.kind] * largest


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("half", [True, False])
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_any_cut_moves_values_and_turns_keys(kind: str, half: bool, data: st.DataObject) -> None:
    tokens = data.draw(st.integers(2, 50))
    cached = Cached(kind, tokens, rotary(half))
    kept = np.array(
        sorted(data.draw(st.sets(st.integers(0, tokens - 1), min_size=1, max_size=tokens - 1))),
        dtype=np.int64,
    )
    cut = cached.cache.recut(cached.holding, kept)
    assert cut is not None
    cached.mover.move(cut)
    cached.check(kept)
    assert len(set(cached.holding.table)) == len(cached.holding.table)


def test_whole_blocks_keep_their_place_in_the_arena() -> None:
    cached = Cached("f32", 48, rotary())
    before = list(cached.holding.table)
    kept = np.array([*range(4), *range(20, 48)])
    values = [buffer.copy() for buffer in cached.arena.buffers[1::2]]
    cut = cached.cache.recut(cached.holding, kept)
    assert cut is not None
    cached.mover.move(cut)
    cached.check(kept)
    # Tokens 24 to 47 move by two whole blocks; only their keys are written to.
    assert cached.holding.table[1:4] == before[3:6]
    for buffer, old in zip(cached.arena.buffers[1::2], values, strict=True):
        for block in before[3:6]:
            np.testing.assert_array_equal(buffer[block], old[block])


def test_blocks_of_others_are_copied_and_left_as_they_are() -> None:
    cached = Cached("bf16", 32, rotary())
    shared = cached.holding.table[:3]
    cached.holding.private = set(cached.holding.table[3:])
    old = [buffer[shared].copy() for buffer in cached.arena.buffers]
    kept = np.array([*range(3), *range(11, 32)])
    cut = cached.cache.recut(cached.holding, kept)
    assert cut is not None and not set(cut.after) & set(shared)
    cached.mover.move(cut)
    cached.check(kept)
    for buffer, before in zip(cached.arena.buffers, old, strict=True):
        np.testing.assert_array_equal(buffer[shared], before)


@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_a_whole_block_of_others_is_copied_with_its_values(kind: str) -> None:
    cached = Cached(kind, 32, rotary())
    cached.holding.private = set()
    kept = np.arange(8, 32)
    cut = cached.cache.recut(cached.holding, kept)
    assert cut is not None and not set(cut.after) & set(cut.before)
    cached.mover.move(cut)
    cached.check(kept)


def test_what_does_not_move_keeps_its_bits() -> None:
    cached = Cached("bf16", 48, rotary())
    old = [buffer.copy() for buffer in cached.arena.buffers]
    front = list(cached.holding.table[:2])
    cut = cached.cache.recut(cached.holding, np.array([*range(16), *range(30, 48)]))
    assert cut is not None and cut.front == 2
    cached.mover.move(cut)
    for buffer, before in zip(cached.arena.buffers, old, strict=True):
        np.testing.assert_array_equal(buffer[front], before[front])


def test_dimensions_that_are_not_rotated_stay() -> None:
    cached = Cached("f32", 30, rotary(dimensions=8))
    kept = np.arange(7, 30)
    cut = cached.cache.recut(cached.holding, kept)
    assert cut is not None
    cached.mover.move(cut)
    cached.check(kept)


def test_many_moves_add_up_to_little() -> None:
    """A key token that is moved a hundred times is off by the roundings, which do not pile up on one side."""
    cached = Cached("bf16", 120, rotary())
    kept = np.arange(120)
    for _ in range(100):
        cut = cached.cache.recut(cached.holding, np.arange(1, len(kept)))
        assert cut is not None
        cached.mover.move(cut)
        kept = kept[1:]
    keys, _ = cached.mover.read(cached.holding.table, np.arange(len(kept)))
    wanted = cached.turn.rotated(cached.plain[:, :, kept], np.arange(len(kept)))
    error = np.sqrt(((keys - wanted) ** 2).mean() / (wanted**2).mean())
    assert error < 0.03


@pytest.mark.parametrize("kind,bits", [("u8", 8), ("u4", 4)])
def test_quantised_keys_can_not_be_moved(kind: str, bits: int) -> None:
    kv = KvFormat(SIZE, (CacheInput("key_cache.0", kind, bits, (HEADS, SIZE, HEAD)),))
    assert f"keeps some in {kind}" in why_not_movable(kv)
    with pytest.raises(ValueError, match="16 or 32 bits"):
        ArenaMover(BlockArena(kv, 2), rotary())


def test_layers_with_other_heads_can_not_be_judged_together() -> None:
    def kv(heads: int) -> KvFormat:
        shapes = [(HEADS, SIZE, HEAD), (heads, SIZE, HEAD)]
        return KvFormat(
            SIZE,
            tuple(
                CacheInput(f"{side}_cache.{layer}", "f16", 16, shape)
                for layer, shape in enumerate(shapes)
                for side in ("key", "value")
            ),
        )

    assert why_not_movable(kv(HEADS)) == ""
    assert "not all keep the same heads" in why_not_movable(kv(HEADS + 1))


def test_a_plan_counts_what_is_missing() -> None:
    history = TokenHistory(BlockKey(b"r" * 32), range(32), SIZE)
    holding = Holding(history, [BlockId(block) for block in range(4)], None, 32)
    holding.private = {BlockId(3)}  # the others are somebody else's too
    plan = RecutPlan(holding, np.array([*range(8), *range(16, 32)]))
    assert (plan.front, plan.missing) == (1, 1)
    cut = plan.carry_out([BlockId(9)])
    assert list(cut.after) == [0, 9, 3]
    assert holding.private == {9, 3}
    assert holding.origins.tolist() == [*range(8), *range(16, 32)]
    assert (holding.dropped, holding.cached) == (8, 24)
