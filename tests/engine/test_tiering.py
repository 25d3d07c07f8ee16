"""What leaves the arena comes back, byte for byte, from real tiers; and their failures hurt nobody."""

from __future__ import annotations

from pathlib import Path
from random import Random
from threading import Event

import pytest

from hotprefix.cache.tiering import PIN_SECONDS
from hotprefix.engine.request import FinishReason
from hotprefix.engine.settings import EngineSettings
from hotprefix.tiers.faulty import Fault
from hotprefix.tiers.stack import StackLimits
from tests.engine.fake_model import letters
from tests.engine.tiers import Tiers
from tests.engine.worlds import World

LONG = "abcdabcdeeffgghhiijj" * 2  # ten blocks
OTHER = "zyxwvutsrqponmlkjihg" * 2


def computed(world: World, prompt: str) -> int:
    """Prompt tokens that a request had to compute."""
    answer = world.ask(prompt, 1)
    assert answer.tokens() == world.expected(answer)
    return len(answer.request.prompt_ids) - answer.usage().cached_tokens


def earlier(tmp_path: Path, *prompts: str, ram: int = 0) -> Tiers:
    """Tiers on disk with what a process, ended in order, had computed."""
    tiers = Tiers(ram=ram, folder=tmp_path / "kv")
    world = World(64, tiers=tiers)
    for prompt in prompts:
        computed(world, prompt)
    world.stepper.close()
    return tiers


def test_what_was_evicted_to_ram_comes_back() -> None:
    world = World(13, tiers=Tiers())
    assert computed(world, LONG) == 40
    assert computed(world, OTHER) == 40  # takes the room of the first
    world.rest()
    assert computed(world, LONG) <= 4
    assert world.tiering is not None
    assert world.tiering.restored_tokens > 0


def test_without_tiers_it_does_not() -> None:
    world = World(13)
    computed(world, LONG)
    computed(world, OTHER)
    assert computed(world, LONG) > 20


def test_what_was_computed_survives_the_process(tmp_path: Path) -> None:
    tiers = Tiers(ram=0, folder=tmp_path / "kv")
    before = World(64, tiers=tiers)
    assert computed(before, LONG + "a") == 41
    before.rest()
    # The process ends without a word: nothing is closed.
    tiers.made[0].close()
    after = World(64, tiers=tiers)
    assert computed(after, LONG + "b") <= 2
    after.rest()


def test_closing_saves_what_is_in_the_arena(tmp_path: Path) -> None:
    tiers = earlier(tmp_path, LONG + "a", ram=1 << 20)
    after = World(64, tiers=tiers)
    assert computed(after, LONG + "b") <= 2
    after.stepper.close()


@pytest.mark.parametrize("rests", [True, False])
def test_more_than_may_wait_at_once_is_saved(tmp_path: Path, rests: bool) -> None:
    """While the engine rests, and at the end: what the queue has no room for is offered later."""
    tiers = Tiers(ram=0, folder=tmp_path / "kv", limits=StackLimits(queued_bytes=200))
    before = World(64, tiers=tiers)
    assert computed(before, LONG + "a") == 41
    if rests:
        before.rest()
        tiers.made[0].close()
    else:
        before.stepper.close()
    after = World(64, tiers=tiers)
    assert computed(after, LONG + "b") <= 2
    assert after.tiering is not None
    after.stepper.close()
    if before.tiering is not None:
        assert before.tiering.stack.dropped == 0


def test_what_was_saved_while_idle_comes_back_from_ram(tmp_path: Path) -> None:
    world = World(13, tiers=Tiers(folder=tmp_path / "kv"))
    computed(world, LONG)
    world.rest()
    computed(world, OTHER)  # takes the room of the first
    world.rest()
    computed(world, LONG)
    assert world.tiering is not None
    stats = world.tiering.stack.stats()
    assert (stats["ram"].hits > 5, stats["disk"].hits) == (True, 0)
    world.stepper.close()


def test_a_prefix_that_is_pinned_with_every_hit_is_not_offered_with_every_hit(tmp_path: Path) -> None:
    world = World(64, tiers=Tiers(ram=0, folder=tmp_path / "kv"))
    computed(world, LONG)
    world.rest()
    assert world.tiering is not None
    offered = []
    for wait in (0.0, 10.0, PIN_SECONDS):
        world.clock.advance(wait)
        assert world.stepper.pin("one", "", letters(LONG)) == 40
        offered.append(len(world.tiering._urgent))
        world.rest()
    assert offered == [10, 0, 10]
    world.stepper.close()


def test_a_partial_tail_comes_back_too(tmp_path: Path) -> None:
    tiers = earlier(tmp_path, LONG + "abc")
    after = World(64, tiers=tiers, settings=EngineSettings(logits_bytes=0))
    assert computed(after, LONG + "abc") <= 2
    after.stepper.close()


def test_many_requests_for_one_prefix_read_it_once(tmp_path: Path) -> None:
    tiers = earlier(tmp_path, LONG + "a")
    after = World(64, tiers=tiers)
    assert after.tiering is not None
    answers = [after.submit(LONG + letter, 2) for letter in "abcdef"]
    after.run()
    assert after.tiering.stack.stats()["disk"].hits <= 11
    for answer in answers:
        assert answer.tokens() == after.expected(answer)
        assert answer.usage().cached_tokens >= 39
    after.stepper.close()


def test_branches_are_both_fetched(tmp_path: Path) -> None:
    tiers = earlier(tmp_path, LONG + "aaaabbbbcccc", LONG + "ddddeeeeffff")
    after = World(64, tiers=tiers)
    answers = [after.submit(LONG + end + "x", 1) for end in ("aaaabbbbcccc", "ddddeeeeffff")]
    after.run()
    for answer in answers:
        assert answer.usage().cached_tokens == 51
        assert answer.tokens() == after.expected(answer)
    after.stepper.close()


def test_tenants_do_not_share_what_is_outside(tmp_path: Path) -> None:
    tiers = Tiers(ram=0, folder=tmp_path / "kv")
    before = World(64, tiers=tiers)
    before.ask(LONG + "a", 1, tenant="one")
    before.stepper.close()
    after = World(64, tiers=tiers)
    assert after.ask(LONG + "a", 1, tenant="two").usage().cached_tokens == 0
    assert after.ask(LONG + "a", 1, tenant="one").usage().cached_tokens > 30
    after.stepper.close()


def test_a_request_that_ends_while_it_waits_leaves_nothing(tmp_path: Path) -> None:
    tiers = earlier(tmp_path, LONG)
    after = World(64, tiers=tiers)
    answer = after.submit(LONG + "b", 3, n=2)
    after.stepper.abort(answer.request.request_id)
    answer.check_ended_once()
    assert answer.reason(1) is FinishReason.ABORTED
    after.run()
    after.stepper.close()


def test_nobody_waits_longer_than_patience_allows(tmp_path: Path) -> None:
    tiers = earlier(tmp_path, LONG)
    after = World(64, tiers=tiers)
    assert after.tiering is not None
    after.inbox.put = lambda call: None  # type: ignore[method-assign,assignment]  # a reader that never answers
    after.stepper.connect(after.inbox.put)
    answer = after.submit(LONG + "b", 1)
    after.stepper.step()
    assert not answer.ended
    wait = after.stepper.wait_at_most()
    assert wait is not None
    after.clock.advance(wait)
    after.stepper.step()
    after.run()
    assert answer.tokens() == after.expected(answer)
    assert answer.usage().cached_tokens == 0
    after.stepper.close()


def test_the_end_in_the_middle_of_a_restore_leaves_nothing(tmp_path: Path) -> None:
    earlier(tmp_path, LONG)
    began, may_go = Event(), Event()

    def pause() -> None:
        began.set()
        assert may_go.wait(30)

    tiers = Tiers(ram=0, folder=tmp_path / "kv", faults=lambda call: Fault.SLOW, pause=pause)
    after = World(64, tiers=tiers)
    answer = after.submit(LONG + "b", 3)
    assert began.wait(30)
    after.stepper.end_all(FinishReason.ABORTED, "The end.")
    may_go.set()
    after.stepper.close()
    after.receive()  # what came too late
    answer.check_ended_once()
    after.check_nothing_leaked()
    assert after.stepper.wait_at_most() is None
    assert after.cache.gauges().cached == 0


def test_nothing_is_read_for_those_who_lost_patience(tmp_path: Path) -> None:
    earlier(tmp_path, LONG, OTHER)
    began, may_go = Event(), Event()

    def pause() -> None:
        began.set()
        assert may_go.wait(30)

    tiers = Tiers(ram=0, folder=tmp_path / "kv", faults=lambda call: Fault.SLOW, pause=pause)
    after = World(64, tiers=tiers)
    assert after.tiering is not None
    answers = [after.submit(stem + "b", 1) for stem in (LONG, OTHER)]
    assert began.wait(30)
    after.clock.advance(10)
    after.stepper.step()
    may_go.set()
    after.run()
    assert [answer.tokens() for answer in answers] == [after.expected(answer) for answer in answers]
    after.stepper.close()
    assert 0 < after.tiering.stack.stats()["disk"].hits <= 11  # of one of both


def test_a_full_arena_takes_what_it_can(tmp_path: Path) -> None:
    tiers = earlier(tmp_path, LONG)
    after = World(13, tiers=tiers)
    busy = after.submit("q" * 16, 24)
    after.step(3)
    late = after.submit(LONG + "b", 1)
    after.run()
    for answer in (busy, late):
        assert answer.tokens() == after.expected(answer)
    after.stepper.close()


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("seed", range(4))
def test_failing_tiers_are_misses(tmp_path: Path, fault: Fault, seed: int) -> None:
    """Under load, with every tier killed, slow, full or corrupt now and then: no wrong token, no failure."""
    random = Random(seed)
    tiers = Tiers(
        ram=2000,
        folder=tmp_path / "kv",
        disk=1 << 16,
        faults=lambda number: fault if (number * 7 + seed) % 3 else None,
    )
    world = World(20, tiers=tiers)
    stems = [LONG[:24], OTHER[:24], "mnbvmnbvmnbvmnbvmnbv"]
    for _ in range(30):
        for _ in range(random.randrange(1, 4)):
            rest = "".join(random.choice("ab") for _ in range(random.randrange(1, 8)))
            world.submit(random.choice(stems) + rest, random.randrange(1, 5))
        world.run()
        if random.random() < 0.3:
            world.rest()
    assert all(answer.tokens() == world.expected(answer) for answer in world.answers)
    assert {answer.reason() for answer in world.answers} == {FinishReason.LENGTH}
    assert world.tiering is not None
    assert world.tiering.stack.failed == 0
    world.stepper.close()
