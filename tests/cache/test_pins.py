"""Pins outlive the policy, are bounded, and hold nothing once they are let go."""

from __future__ import annotations

from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.pins import PinBoard
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.rules import ReuseRules
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.scope import CacheScope
from hotprefix.kv import invariants
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.pool import BlockPool
from hotprefix.kv.tree import BlockTree
from tests.cache.machine_parts import TrueArena

BLOCK, BLOCKS = 4, 20
ROOT = CacheScope("model", "format").root()


class World:
    def __init__(self, limit: int = 10, granularity: int = 1) -> None:
        self.arena = TrueArena(BLOCKS, BLOCK)
        tree = BlockTree(BLOCK, POLICIES["lru"](BLOCKS))
        rules = ReuseRules(BLOCK, granularity)
        self.cache = PrefixCache(BlockPool(BLOCKS), tree, rules, LogitsStore(4096), self.arena)
        self.board = PinBoard(self.cache, limit)

    def history(self, *tokens: int) -> TokenHistory:
        return TokenHistory(ROOT, tokens, BLOCK)

    def compute(self, *tokens: int) -> None:
        history = self.history(*tokens)
        holding = self.cache.open(history, self.cache.plan(history))
        assert holding is not None
        self.arena.verify(holding)
        self.arena.write(holding, holding.computed, len(history))
        holding.computed = holding.prefilled = len(history)
        self.cache.close(holding)
        self.check()

    def check(self) -> None:
        invariants.check(self.cache.tree, self.cache.pool, self.cache.leases, [])

    def flood(self) -> None:
        for number in range(50):
            self.compute(*(1000 + number * 8 + at for at in range(8)))

    def known(self, *tokens: int) -> int:
        return self.cache.plan(self.history(*tokens, 7, 7)).reused


def test_what_can_not_be_held_leaves_the_pin_of_that_name_alone() -> None:
    """In a quantised format less than a block is nothing to hold."""
    world = World(granularity=BLOCK)
    world.compute(*range(8))
    assert world.board.pin("p", world.history(*range(8))) == 8
    for tokens in ((), (1, 2, 3)):
        assert world.board.pin("p", world.history(*tokens)) == 0
        assert world.board.pin("q", world.history(*tokens)) == 0
    assert (len(world.board), world.board.blocks) == (1, 2)


def test_a_pinned_prefix_survives_a_flood_to_the_token() -> None:
    world = World()
    world.compute(*range(10))
    assert world.board.pin("p", world.history(*range(10))) == 10
    world.flood()
    assert world.known(*range(10)) == 10
    world.board.unpin("p")
    world.flood()
    assert world.known(*range(10)) == 0
    assert len(world.cache.leases) == 0


def test_what_is_not_computed_can_not_be_pinned() -> None:
    world = World()
    world.compute(*range(10))
    assert world.board.pin("p", world.history(*range(11))) == 0
    assert world.board.pin("q", world.history(0, 1, 2, 3, 99)) == 0
    assert len(world.board) == world.board.blocks == 0


def test_pins_share_blocks_and_are_bounded() -> None:
    world = World(limit=3)
    world.compute(*range(12))
    assert world.board.pin("short", world.history(*range(8))) == 8
    assert world.board.pin("long", world.history(*range(12))) == 12
    assert world.board.blocks == 3
    world.compute(50, 51, 52, 53)
    assert world.board.pin("other", world.history(50, 51, 52, 53)) == 0
    world.board.unpin("short")
    world.board.unpin("never")
    assert world.board.blocks == 3
    world.board.clear()
    assert world.board.blocks == len(world.board) == 0
    world.check()


def test_a_pin_of_the_same_name_takes_the_place_of_the_old_one() -> None:
    world = World(limit=3)
    world.compute(*range(8))
    world.board.pin("p", world.history(*range(4)))
    assert world.board.pin("p", world.history(*range(8))) == 8
    assert (len(world.board), world.board.blocks, len(world.cache.leases)) == (1, 2, 1)


def test_quantised_formats_pin_whole_blocks() -> None:
    world = World(granularity=BLOCK)
    world.compute(*range(10))
    assert world.board.pin("p", world.history(*range(10))) == 8
