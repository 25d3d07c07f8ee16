"""Attention is noted for those who need it, from the first pass to the last, whatever comes between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hotprefix.engine.runner import Row
from hotprefix.engine.settings import EngineSettings
from hotprefix.engine.strategy.watch import AttentionWatch
from tests.engine.fake_model import FakeModel
from tests.engine.strategy.test_steps import TEXT
from tests.engine.strategy.truth import mixed, window
from tests.engine.worlds import World


class Watching:
    """The fake model, all of whose tokens look at every token alike."""

    def __init__(self, model: FakeModel) -> None:
        self._model = model
        self._rows: Sequence[Row] = ()
        self.asked = 0

    def run(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        self._rows = rows
        return self._model.run(rows)

    def attention(self) -> list[NDArray[np.float32]]:
        self.asked += 1
        return [np.ones((2, row.past + len(row.tokens)), dtype=np.float32) for row in self._rows]

    def looked_back(self, tokens: int) -> int:
        return min(tokens, 3)


def watched(blocks: int, settings: EngineSettings | None = None) -> tuple[World, Watching]:
    world = World(blocks, settings=settings)
    runner = Watching(world.model)
    world.stepper._parts = replace(world.stepper._parts, runner=runner, watch=AttentionWatch(runner))
    return world, runner


def check(world: World) -> None:
    assert all(sequence.tally is None for sequence in world.scheduler.waiting)
    for sequence in world.scheduler.running:
        holding = sequence.holding
        if sequence.strategy.cutter is None:
            assert sequence.tally is None
        elif holding is not None and sequence.tally is not None:
            assert len(sequence.tally) == holding.cached


def test_a_tally_is_as_long_as_its_cache() -> None:
    world, runner = watched(22, EngineSettings(prefill_chunk=64, mixed_chunk=64))
    world.ask(TEXT[:40], 2)
    assert runner.asked == 0
    world.submit(TEXT[4:20], 40)
    answers = [world.submit(TEXT[start : start + 60], 40, strategy=window(32)) for start in range(3)]
    answers.append(world.submit(TEXT[:70], 20, strategy=mixed(24)))
    set_back = 0
    for _ in range(2000):
        if world.stepper.idle:
            break
        world.step()
        check(world)
        preempted = world.scheduler.batches[-1].preempted
        set_back += any(sequence.parent.dropped_tokens for sequence in preempted)
    world.run()
    assert set_back, "nobody was set back that had been cut"
    assert all(answer.usage().dropped_tokens for answer in answers)
    assert runner.asked > 10
