"""The log of evictions: bounded, by key, and honest about what it has forgotten."""

from __future__ import annotations

import sys
import threading

from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.keys.chain import TokenHistory
from hotprefix.kv.accounts import Account, Limits, Outcome
from hotprefix.kv.node import Node
from tests.cache.test_prefix_cache import World
from tests.kv.trees import BLOCK, OTHER_ROOT, history

ROOT = Node(BlockKey(b"root"), None, b"", BlockId(-1))


def node(number: int) -> Node:
    return Node(BlockKey(number.to_bytes(32, "big")), ROOT, b"", BlockId(0))


def causes(log: EvictionLog, text: TokenHistory, since: int) -> list[Outcome | None]:
    return [log.cause(key, since) for key in text.keys(len(text) // BLOCK)]


def test_what_makes_room_is_in_the_log_until_it_is_back() -> None:
    world = World(8)
    log, first = world.cache.evictions, "a" * BLOCK + "b" * BLOCK + "c"
    world.serve(first)
    assert (len(log), log.is_complete) == (0, True)
    world.serve("x" * 8 * BLOCK)
    missing = log.moment
    assert causes(log, history(first), missing) == [Outcome.CAPACITY] * 2
    assert causes(log, history("n" * 3 * BLOCK), missing) == [None] * 3
    world.serve(first)
    assert causes(log, history(first), missing) == [Outcome.CAPACITY] * 2, "missing when it was asked for"
    assert causes(log, history(first), log.moment) == [None] * 2, "but no longer"


def test_another_tenant_has_other_keys() -> None:
    world = World(8)
    world.serve("a" * 2 * BLOCK)
    world.serve("x" * 8 * BLOCK)
    mine, other = history("a" * 2 * BLOCK), TokenHistory(OTHER_ROOT, [97] * 2 * BLOCK, BLOCK)
    assert causes(world.cache.evictions, mine, 0) != causes(world.cache.evictions, other, 0)
    assert causes(world.cache.evictions, other, 0) == [None, None]


def test_a_tenant_above_its_ceiling_is_told_apart() -> None:
    log, account = EvictionLog(), Account(BlockKey(b"tenant"))
    root = Node(BlockKey(b"tenant"), None, b"", BlockId(-1))
    root.account = account
    block = Node(BlockKey(b"block"), root, b"", BlockId(0))
    account.limits, account.cached = Limits(ceiling=3), 3
    log.evicted(block)
    assert log.cause(block.key, 0) is Outcome.CEILING
    account.cached = 2
    log.evicted(block)
    assert log.cause(block.key, 0) is Outcome.CAPACITY


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=60), st.integers(2, 12))
def test_what_is_known_is_true_and_the_newest_is_known(steps: list[tuple[bool, int]], limit: int) -> None:
    """Against a model: for every key, when it was last evicted and when it came back."""
    log, model, order = EvictionLog(limit), dict[int, int](), list[int]()
    for is_eviction, number in steps:
        before = log.moment
        if is_eviction:
            log.evicted(node(number))
            model[number] = 0
            order = [*(one for one in order if one != number), number]
        else:
            log.sealed(node(number))
            if model.get(number) == 0 and log.moment > before:
                model[number] = log.moment
        assert len(log) <= limit + 1
        newest = order[-(limit // 2) :] if not any(model.values()) else []
        for key in range(8):
            for since in range(log.moment + 1):
                is_gone = key in model and not 0 < model[key] <= since
                known = log.cause(node(key).key, since)
                assert known is None or is_gone, "never a false accusation"
                if is_gone and (log.is_complete or key in newest):
                    assert known is not None


def test_it_can_be_asked_while_it_is_written() -> None:
    log, done = EvictionLog(64), threading.Event()
    nodes = [node(number) for number in range(256)]

    def write() -> None:
        for _ in range(40):
            for one in nodes:
                log.evicted(one)
                log.sealed(one)
        done.set()

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        writer = threading.Thread(target=write)
        writer.start()
        asked = 0
        while not done.is_set() or not asked:
            for one in nodes:
                assert log.cause(one.key, log.moment) in (None, Outcome.CAPACITY)
            assert len(log) <= 64
            asked += 1
        writer.join()
    finally:
        sys.setswitchinterval(interval)
    assert not log.is_complete
