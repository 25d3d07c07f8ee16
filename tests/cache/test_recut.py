"""Tables that are cut anew: shared blocks are left to others; a cut that finds no room changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from hotprefix.cache.holding import Holding
from hotprefix.kv import invariants
from hotprefix.kv.pool import BlockState
from tests.cache.test_prefix_cache import World
from tests.kv.trees import BLOCK

TEXT = "abcdefghijklmnopqrstuvwxyz"


def kept(holding: Holding, start: int, end: int) -> np.ndarray:
    """All places but [start, end)."""
    places = np.arange(holding.cached)
    return np.concatenate((places[:start], places[end:]))


def books(world: World) -> None:
    """Every invariant of the books; what is in the slots has been moved by nobody here."""
    cache = world.cache
    invariants.check(cache.tree, cache.pool, cache.leases, cache.private_blocks(world.open))


def whole(world: World, text: str) -> Holding:
    holding = world.start(text)
    world.compute(holding)
    return holding


def test_own_blocks_stay_and_shared_ones_are_left() -> None:
    world = World(16)
    holding = whole(world, TEXT[: 5 * BLOCK])
    before = list(holding.table)
    cut = world.cache.recut(holding, kept(holding, BLOCK, 2 * BLOCK))
    books(world)
    assert cut is not None and cut.front == 1
    # All were in the tree by then: the blocks behind the first one need copies.
    assert holding.table[0] == before[0]
    assert not set(holding.table[1:]) & set(before)
    assert all(world.cache.pool.state(block) is BlockState.PRIVATE for block in holding.table[1:])
    assert holding.sealed == 1
    again = world.cache.recut(holding, kept(holding, BLOCK, 2 * BLOCK))
    assert again is not None
    assert list(again.after)[1:3] == list(cut.after)[2:4], "own blocks move up the table as they are"
    books(world)
    world.open.remove(holding)
    world.cache.close(holding)
    books(world)


def test_what_was_left_can_still_be_found_and_nothing_else() -> None:
    world = World(16)
    holding = whole(world, TEXT[: 5 * BLOCK])
    assert world.cache.recut(holding, kept(holding, 0, BLOCK)) is not None
    world.open.remove(holding)
    world.cache.close(holding)
    found = world.start(TEXT[: 5 * BLOCK])
    assert found.computed == 5 * BLOCK - 2
    books(world)


def test_without_room_for_copies_nothing_changes() -> None:
    world = World(6)
    first = whole(world, TEXT[: 4 * BLOCK])
    second = world.start(TEXT[: 4 * BLOCK] + "!")
    world.compute(second)
    before = list(first.table), set(first.private), first.sealed, first.dropped, first.origins.tolist()
    lease = first.lease
    assert lease is not None
    nodes = list(lease.nodes)
    assert world.cache.recut(first, kept(first, 0, BLOCK)) is None
    after = list(first.table), set(first.private), first.sealed, first.dropped, first.origins.tolist()
    assert before == after
    assert lease.nodes == nodes
    books(world)
    world.open.remove(second)
    world.cache.close(second)
    assert world.cache.recut(first, kept(first, 0, BLOCK)) is not None
    books(world)


def test_logits_behind_a_cut_are_not_kept() -> None:
    world = World(16)
    holding = whole(world, TEXT[: 3 * BLOCK])
    assert world.cache.recut(holding, kept(holding, 0, BLOCK)) is not None
    world.cache.keep_logits(holding, np.zeros(4, dtype=np.float32))
    world.cache.share_tail(holding)
    world.cache.commit(holding)
    assert world.cache.gauges().logits_bytes == 0
    books(world)


@pytest.mark.parametrize(("start", "end"), [(0, 1), (3, 9), (1, 2 * BLOCK + 1), (BLOCK, 3 * BLOCK)])
def test_origins_follow(start: int, end: int) -> None:
    world = World(16)
    holding = whole(world, TEXT[: 4 * BLOCK])
    assert world.cache.recut(holding, kept(holding, start, end)) is not None
    rest = [*range(start), *range(end, 4 * BLOCK)]
    assert holding.origins.tolist() == rest
    holding.computed += 3
    assert holding.origins.tolist() == [*rest, *range(4 * BLOCK, 4 * BLOCK + 3)]
    assert holding.cached == len(rest) + 3
