"""The pool: every block in exactly one state, all or nothing, errors for impossible moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId
from hotprefix.kv.pool import BlockPool, BlockState


def counts(pool: BlockPool) -> tuple[int, ...]:
    return tuple(pool.count(state) for state in BlockState)


def test_a_block_goes_round_through_its_states() -> None:
    pool = BlockPool(3)
    (block,) = pool.allocate(1) or []
    assert pool.state(block) is BlockState.PRIVATE
    pool.seal(block)
    assert pool.state(block) is BlockState.SEALED
    assert counts(pool) == (2, 0, 1)
    pool.evict(block)
    assert pool.state(block) is BlockState.FREE
    assert counts(pool) == (3, 0, 0)


def test_a_sealed_block_can_become_private_again() -> None:
    pool = BlockPool(3)
    (block,) = pool.allocate(1) or []
    pool.seal(block)
    pool.reclaim(block)
    assert pool.state(block) is BlockState.PRIVATE
    assert counts(pool) == (2, 1, 0)
    assert block not in pool.free_ids()


def test_ids_lie_in_the_range_of_the_pool() -> None:
    pool = BlockPool(4, first=10)
    assert sorted(pool.allocate(4) or []) == [10, 11, 12, 13]
    assert pool.allocate(1) is None


def test_allocate_is_all_or_nothing() -> None:
    pool = BlockPool(5)
    assert pool.allocate(3) is not None
    before = counts(pool), pool.free_ids()
    assert pool.allocate(3) is None
    assert (counts(pool), pool.free_ids()) == before
    assert pool.allocate(0) == []
    assert pool.allocate(2) is not None
    assert pool.free == 0


def test_recycled_blocks_go_before_untouched_ones() -> None:
    pool = BlockPool(100)
    first = pool.allocate(3) or []
    pool.release(first[1:])
    pool.seal(first[0])
    pool.evict(first[0])
    assert set(pool.allocate(3) or []) == set(first)
    assert pool.allocate(2) == [3, 4]


@pytest.mark.parametrize("verb", ["seal", "release", "evict", "reclaim"])
@pytest.mark.parametrize("state", BlockState)
def test_only_the_right_state_may_be_left(verb: str, state: BlockState) -> None:
    pool = BlockPool(2)
    block = BlockId(1)
    if state is not BlockState.FREE:
        block = (pool.allocate(1) or [])[0]
    if state is BlockState.SEALED:
        pool.seal(block)
    before = counts(pool), pool.free_ids()
    allowed = BlockState.PRIVATE if verb in ("seal", "release") else BlockState.SEALED
    move = (lambda: pool.release([block])) if verb == "release" else (lambda: getattr(pool, verb)(block))
    if state is allowed:
        move()
        return
    with pytest.raises(LogicError, match=f"block {block} is not {allowed.name.lower()}"):
        move()
    assert (counts(pool), pool.free_ids()) == before


@pytest.mark.parametrize("block", [-1, 9, 14])
def test_a_block_of_another_pool_is_refused(block: int) -> None:
    pool = BlockPool(4, first=10)
    pool.allocate(4)
    with pytest.raises(LogicError):
        pool.release([BlockId(block)])


def test_releasing_twice_at_once_is_refused() -> None:
    pool = BlockPool(2)
    (block,) = pool.allocate(1) or []
    with pytest.raises(LogicError):
        pool.release([block, block])


def test_an_empty_pool_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        BlockPool(0)


@given(st.lists(st.tuples(st.sampled_from(["allocate", "release", "seal", "evict"]), st.integers(0, 5))))
def test_no_block_is_handed_out_twice(moves: list[tuple[str, int]]) -> None:
    pool = BlockPool(6)
    private: list[BlockId] = []
    sealed: list[BlockId] = []
    for verb, number in moves:
        if verb == "allocate":
            taken = pool.allocate(number)
            assert (taken is None) == (number > 6 - len(private) - len(sealed))
            private += taken or []
        elif verb == "release" and private:
            pool.release([private.pop(number % len(private))])
        elif verb == "seal" and private:
            sealed.append(private.pop(number % len(private)))
            pool.seal(sealed[-1])
        elif verb == "evict" and sealed:
            pool.evict(sealed.pop(number % len(sealed)))
        assert sorted([*pool.free_ids(), *private, *sealed]) == list(range(6))
        assert counts(pool) == (6 - len(private) - len(sealed), len(private), len(sealed))
