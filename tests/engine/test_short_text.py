"""Short prompts in the scheduler: who waits for whom, and what is computed how often."""

from __future__ import annotations

import pytest

from hotprefix.engine.settings import EngineSettings
from tests.engine.test_scheduler import long_prompt
from tests.engine.worlds import World


def test_nobody_waits_for_what_is_not_kept() -> None:
    world = World(400, settings=EngineSettings(shortest_kept=64))
    answers = [world.submit("the same beginning " + name * 5, 1) for name in "ab"]
    world.step()
    assert all(answer.ended for answer in answers)
    world.run()
    assert all(answer.tokens() == world.expected(answer) for answer in answers)


@pytest.mark.parametrize("granularity", [1, 4])
@pytest.mark.parametrize("length", [1, 3, 41, 63])
def test_identical_short_prompts_are_computed_twice_at_most(length: int, granularity: int) -> None:
    settings = EngineSettings(prefill_chunk=64, mixed_chunk=32, shortest_kept=64)
    world = World(400, settings=settings, granularity=granularity)
    answers = [world.submit(long_prompt(length), 1) for _ in range(8)]
    world.run()
    assert world.model.computed == 2 * length
    assert all(answer.tokens() == world.expected(answer) for answer in answers)
    world.ask(long_prompt(length), 1)
    assert world.model.computed == 2 * length


@pytest.mark.parametrize("n", [2, 4])
def test_choices_share_a_short_prompt_at_once(n: int) -> None:
    world = World(400, settings=EngineSettings(shortest_kept=64))
    world.ask(long_prompt(41), 1, n=n, temperature=1.0, seed=3)
    assert world.model.computed == 41


def test_a_short_prompt_is_kept_at_once_if_that_is_asked_for() -> None:
    world = World(400, settings=EngineSettings(shortest_kept=64))
    world.submit(long_prompt(41), 1, keeps_short=True)
    world.run()
    world.ask(long_prompt(41), 1)
    assert world.model.computed == 41


def test_a_short_request_that_had_to_yield_goes_on_where_it_stopped() -> None:
    computed = []
    for shortest in (0, 64):
        world = World(24, settings=EngineSettings(shortest_kept=shortest))
        answers = [world.submit(long_prompt(30, name), 20) for name in "abc"]
        world.run()
        assert all(answer.tokens() == world.expected(answer) for answer in answers)
        computed.append(world.model.computed)
    assert computed[0] == computed[1]
