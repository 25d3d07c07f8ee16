"""What must hold of a world in which caches are cut."""

from __future__ import annotations

import numpy as np

from hotprefix.cache.prefix import PrefixCache
from hotprefix.engine.strategy.choice import StrategyChoice, StrategyName
from tests.engine.fake_model import link
from tests.engine.worlds import World


def window(tokens: int = 16, **settings: object) -> StrategyChoice:
    return StrategyChoice(StrategyName.WINDOW, window=tokens, **settings)  # type: ignore[arg-type]


def mixed(tokens: int = 16, **settings: object) -> StrategyChoice:
    settings.setdefault("recent", 4)
    return StrategyChoice(StrategyName.MIXED, window=tokens, **settings)  # type: ignore[arg-type]


STATIC = StrategyChoice(StrategyName.STATIC)


def check_memory(world: World) -> None:
    """No sequence has more blocks than its budget."""
    for sequence in world.scheduler.running:
        cutter = sequence.strategy.cutter
        if cutter is not None and sequence.holding is not None:
            assert len(sequence.holding.table) * world.cache.block_size <= cutter.budget
            assert sequence.holding.cached <= cutter.budget


def check_tree(world: World) -> None:
    """Every block that can be found holds what a whole computation of its path would have written."""
    if not isinstance(world.cache, PrefixCache):
        return
    stack = [(child, 0, 0) for root in world.cache.tree.roots for child in root.children.values()]
    while stack:
        node, before, position = stack.pop()
        for slot, token in enumerate(np.frombuffer(node.tokens, dtype="<u4").tolist()):
            before = link(before, token)
            assert int(world.model.digests[node.block, slot]) == before, "a block that was cut can be found"
            assert int(world.model.positions[node.block, slot]) == position
            position += 1
        stack += [(child, before, position) for child in node.children.values()]


def step(world: World, count: int = 1) -> None:
    """Steps, with everything checked after each."""
    for _ in range(count):
        world.step()
        check_memory(world)
        check_tree(world)


def run(world: World, limit: int = 2000) -> None:
    """Steps to the end."""
    for _ in range(limit):
        if world.stepper.idle:
            break
        step(world)
    world.run()
