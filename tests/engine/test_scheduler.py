"""Who computes what in a step: nobody is held up, nobody is forgotten, nothing is computed twice."""

from __future__ import annotations

import pytest

from hotprefix.cache.prefix import PrefixCache
from hotprefix.engine.request import FinishReason
from hotprefix.engine.scheduler import Batch
from hotprefix.engine.settings import EngineSettings
from tests.engine.worlds import Answer, World

SMALL = EngineSettings(prefill_chunk=64, mixed_chunk=32)


def long_prompt(length: int, name: str = "L") -> str:
    """A prompt of so many tokens that shares nothing with one of another name."""
    return (name + "".join(chr(97 + at * at % 26) for at in range(length)))[:length]


def computed(batch: Batch, answer: Answer, *, prefill: bool = True) -> int:
    """Tokens that a batch computes for a request."""
    name = answer.request.request_id
    return sum(
        part.end - part.start
        for part in batch.parts
        if part.sequence.parent.request.request_id == name and part.prefill == prefill
    )


def first_tokens(world: World, answers: list[Answer], limit: int = 500) -> list[int]:
    """Run; for each request, the step after which its first token was out."""
    steps = [0] * len(answers)
    for step in range(1, limit):
        world.step()
        for index, answer in enumerate(answers):
            if not steps[index] and answer.deltas:
                steps[index] = step
        if all(steps):
            break
    world.run()
    return steps


class TestContinuousBatching:
    def test_newcomers_join_those_who_decode(self) -> None:
        world = World()
        first = world.submit("first", 20)
        world.step(3)
        second = world.submit("second", 3)
        world.step()
        batch = world.scheduler.batches[-1]
        assert (computed(batch, first, prefill=False), computed(batch, second)) == (1, 6)
        world.step()
        assert len(world.scheduler.batches[-1].parts) == 2
        world.run()
        assert [len(first.tokens()), len(second.tokens())] == [20, 3]

    def test_one_step_carries_everyone(self) -> None:
        world = World(200)
        for number in range(12):
            world.submit(f"{number} prompt", 5)
        world.run()
        assert len(world.scheduler.batches) == 5

    def test_no_more_than_max_running(self) -> None:
        world = World(200, settings=EngineSettings(max_running=3))
        answers = [world.submit(f"{number} prompt", 4) for number in range(9)]
        while not world.stepper.idle:
            world.step()
            assert len(world.scheduler.running) <= 3
        assert first_tokens(world, answers) != []
        assert [answer.tokens() for answer in answers] == [world.expected(answer) for answer in answers]


class TestChunkedPrefill:
    def test_a_long_prompt_never_keeps_a_decoding_sequence_from_its_token(self) -> None:
        world = World(200, settings=SMALL)
        talker = world.submit("talk", 60)
        world.step(2)
        document = world.submit(long_prompt(400), 2)
        while not document.deltas:
            before = len(talker.tokens())
            world.step()
            batch = world.scheduler.batches[-1]
            assert len(talker.tokens()) == before + 1
            assert 0 < sum(part.end - part.start for part in batch.parts if part.prefill) <= SMALL.mixed_chunk
        world.run()
        assert document.tokens() == world.expected(document)

    def test_alone_it_may_take_the_larger_budget(self) -> None:
        world = World(200, settings=SMALL)
        world.submit(long_prompt(300), 1)
        world.run()
        sizes = [part.end - part.start for batch in world.scheduler.batches for part in batch.parts]
        assert sizes == [64, 64, 64, 64, 44]

    @pytest.mark.parametrize("granularity", [1, 4])
    def test_the_budget_holds_for_all_prompts_together(self, granularity: int) -> None:
        world = World(400, settings=SMALL, granularity=granularity)
        for number in range(10):
            world.submit(long_prompt(30 + 17 * number, chr(65 + number)), 1 + number)
        slack = max(2, granularity)
        while not world.stepper.idle:
            world.step()
            batch = world.scheduler.batches[-1]
            mixed = any(not part.prefill for part in batch.parts)
            budget = SMALL.mixed_chunk if mixed else SMALL.prefill_chunk
            assert sum(part.end - part.start for part in batch.parts if part.prefill) <= budget + slack

    def test_nobody_has_two_parts_in_a_step(self) -> None:
        world = World(400, settings=SMALL)
        for number in range(10):
            world.submit(long_prompt(20 + 23 * number, chr(65 + number)), 5)
        while not world.stepper.idle:
            world.step()
            names = [id(part.sequence) for part in world.scheduler.batches[-1].parts]
            assert len(names) == len(set(names))

    def test_the_whole_budget_is_used(self) -> None:
        """Two prompts, one nearly done: what it leaves goes to the other."""
        world = World(200, settings=SMALL)
        world.submit(long_prompt(20, "A"), 1)
        other = world.submit(long_prompt(200, "B"), 1)
        world.step()
        assert computed(world.scheduler.batches[-1], other) == 44


class TestFairness:
    def test_short_prompts_pass_long_ones(self) -> None:
        world = World(400, settings=SMALL)
        document = world.submit(long_prompt(900), 1)
        world.step(2)
        questions = [world.submit(long_prompt(20, chr(65 + number)), 1) for number in range(3)]
        steps = first_tokens(world, [document, *questions])
        assert max(steps[1:]) <= 4
        assert steps[0] > 10

    @pytest.mark.parametrize("length", [20, 31, 33, 60, 64, 65, 100])
    def test_a_stream_of_others_never_starves_a_long_prompt(self, length: int) -> None:
        """While prompts come in without end, the oldest gets at least half of every budget."""
        world = World(1000, settings=SMALL)
        document = world.submit(long_prompt(600), 1)
        world.step()
        for number in range(60):
            world.submit(long_prompt(length, chr(256 + number)), 1)
            world.step()
            if document.deltas:
                break
            assert computed(world.scheduler.batches[-1], document) >= SMALL.mixed_chunk // 2
        assert document.deltas
        world.run()

    def test_the_line_is_first_come_first_served(self) -> None:
        world = World(400, settings=EngineSettings(max_running=1))
        answers = [world.submit(f"{number} prompt", 2) for number in range(5)]
        steps = first_tokens(world, answers)
        assert steps == sorted(steps)

    def test_of_equals_the_oldest_is_done_first(self) -> None:
        """Sharing every step among them would only make all of them late."""
        world = World(400, settings=SMALL)
        answers = [world.submit(long_prompt(128, name), 1) for name in "ABC"]
        steps = first_tokens(world, answers)
        assert steps == [2, 4, 6]


class TestFullArena:
    def test_admission_waits_for_room(self) -> None:
        world = World(16)
        first = world.submit(long_prompt(40, "A"), 8)
        second = world.submit(long_prompt(40, "B"), 8)
        world.step()
        assert [len(world.scheduler.running), len(world.scheduler.waiting)] == [1, 1]
        assert not second.deltas
        world.run()
        for answer in (first, second):
            assert answer.tokens() == world.expected(answer)
        assert world.observer.preemptions == 0

    def test_everyone_who_runs_keeps_a_block_in_reserve(self) -> None:
        world = World(16)
        world.submit(long_prompt(24, "A"), 30)
        world.submit(long_prompt(36, "B"), 3)  # six and nine blocks: one is left, for A
        world.submit(long_prompt(1, "C"), 3)  # would need one and leave none
        world.step()
        assert [len(world.scheduler.running), len(world.scheduler.waiting)] == [2, 1]
        world.run()

    def test_who_was_preempted_lets_a_step_pass(self) -> None:
        world = World(16)
        for name in "ABC":
            world.submit(long_prompt(10, name), 40)
        while not world.stepper.idle:
            world.step()
            batches = world.scheduler.batches
            if len(batches) > 1 and batches[-2].preempted:
                assert not batches[-1].admitted
        assert world.observer.preemptions > 0

    def test_who_fits_later_does_not_pass_who_waits_for_room(self) -> None:
        world = World(16)
        world.submit(long_prompt(40, "A"), 8)
        big = world.submit(long_prompt(40, "B"), 2)
        small = world.submit("C", 2)
        steps = first_tokens(world, [big, small])
        assert steps[0] <= steps[1]

    @pytest.mark.parametrize("policy", ["lru", "slru", "adaptive", None])
    def test_preemption_changes_no_answer(self, policy: str | None) -> None:
        world = World(16, settings=EngineSettings(policy=policy))
        answers = [world.submit(long_prompt(10, name), 40) for name in "ABC"]
        world.run()
        assert world.observer.preemptions > 0
        assert [answer.tokens() for answer in answers] == [world.expected(answer) for answer in answers]
        assert world.observer.ended == [FinishReason.LENGTH] * 3
        if isinstance(world.cache, PrefixCache):
            assert len(world.cache.logits) == 3, "logits are kept for prompts only"
        # A preempted request was admitted once and is asked for in the cache once.
        assert len(world.observer.matched) == 3

    def test_preemption_keeps_what_was_drawn_at_random(self) -> None:
        world = World(16)
        options = {"temperature": 1.0, "seed": 4}
        answers = [world.submit(long_prompt(10, name), 40, **options) for name in "ABC"]
        world.run()
        assert world.observer.preemptions > 0
        for name, answer in zip("ABC", answers, strict=True):
            assert answer.tokens() == World().ask(long_prompt(10, name), 40, **options).tokens()

    def test_the_oldest_is_never_preempted(self) -> None:
        world = World(16)
        answers = [world.submit(long_prompt(10, name), 40) for name in "ABC"]
        while not answers[0].ended:
            before = len(answers[0].tokens())
            world.step()
            assert len(answers[0].tokens()) == before + 1
        world.run()

    @pytest.mark.parametrize("policy", ["lru", None])
    @pytest.mark.parametrize("prompt", [1, 30, 60, 61, 62, 63])
    def test_a_lone_sequence_goes_on_to_the_last_slot(self, policy: str | None, prompt: int) -> None:
        world = World(16, settings=EngineSettings(policy=policy))
        for _ in range(3):  # again, with its own past in the arena
            answer = world.ask(long_prompt(prompt), None)
            assert answer.reason() is FinishReason.LENGTH
            assert len(answer.tokens()) == 64 - prompt
            assert answer.tokens() == world.expected(answer)

    def test_who_is_alone_and_finds_no_block_ends_with_length(self) -> None:
        world = World(8)
        answer = world.submit(long_prompt(10), 22)
        world.step(2)
        taken = world.pool.allocate(world.pool.free)  # something else holds the rest
        assert taken
        while not answer.ended:
            world.stepper.step()
        assert answer.reason() is FinishReason.LENGTH
        assert len(answer.tokens()) == 3
        assert answer.tokens() == world.expected(answer)[:3]
        world.pool.release(taken)
        world.run()

    def test_many_choices_in_a_small_arena(self) -> None:
        world = World(12)
        answer = world.ask(long_prompt(17), 20, n=6, temperature=1.0, seed=9)
        for choice in range(6):
            alone = World().ask(long_prompt(17), 20, temperature=1.0, seed=9 + choice)
            assert answer.tokens(choice) == alone.tokens()


class TestSingleFlight:
    @pytest.mark.parametrize("granularity", [1, 4])
    @pytest.mark.parametrize("length", [1, 3, 4, 40, 41, 43, 200])
    def test_identical_cold_prompts_are_computed_once(self, length: int, granularity: int) -> None:
        world = World(400, settings=SMALL, granularity=granularity)
        answers = [world.submit(long_prompt(length), 1) for _ in range(8)]
        world.run()
        assert world.model.computed == length
        assert all(answer.tokens() == world.expected(answer) for answer in answers)

    @pytest.mark.parametrize("granularity", [1, 4])
    @pytest.mark.parametrize("length", [1, 3, 41, 43])
    def test_the_tail_is_shared_though_its_block_is_being_written_to(
        self, length: int, granularity: int
    ) -> None:
        world = World(400, settings=SMALL, granularity=granularity)
        answers = [world.submit(long_prompt(length), 3) for _ in range(8)]
        world.run()
        assert world.model.computed == length + 8 * 2
        assert all(answer.tokens() == world.expected(answer) for answer in answers)

    def test_those_who_come_later_join(self) -> None:
        world = World(400, settings=SMALL)
        world.submit(long_prompt(300), 4)
        for _ in range(4):
            world.step()
            world.submit(long_prompt(300), 1)
        world.run()
        assert world.model.computed == 300 + 3

    def test_a_common_prefix_is_computed_once_and_the_rest_by_each(self) -> None:
        world = World(400, settings=SMALL)
        answers = [world.submit(long_prompt(200) + name * 10, 1) for name in "abcdefgh"]
        world.run()
        assert world.model.computed == 200 + 8 * 10
        assert all(answer.tokens() == world.expected(answer) for answer in answers)

    def test_followers_do_not_hold_up_strangers(self) -> None:
        world = World(400, settings=SMALL)
        world.submit(long_prompt(300), 1)
        world.step()
        for _ in range(3):
            world.submit(long_prompt(300), 1)
        stranger = world.submit("stranger", 1)
        world.step()
        assert stranger.deltas
        world.run()

    def test_followers_wait_with_no_blocks(self) -> None:
        world = World(400, settings=SMALL)
        for _ in range(5):
            world.submit(long_prompt(300), 1)
        world.step()
        assert [len(world.scheduler.running), len(world.scheduler.waiting)] == [1, 4]
        world.run()

    def test_without_a_cache_nobody_waits_for_what_is_not_shared(self) -> None:
        world = World(64, settings=EngineSettings(policy=None))
        answers = [world.submit("the same beginning " + name * 5, 4) for name in "abcdef"]
        world.step()
        assert len(world.scheduler.running) == 6
        assert all(answer.deltas for answer in answers)
        world.run()

    @pytest.mark.parametrize("after", [1, 2, 4])
    def test_when_the_leader_is_aborted_a_follower_goes_on_where_it_stopped(self, after: int) -> None:
        world = World(400, settings=SMALL)
        leader = world.submit(long_prompt(300), 3)
        followers = [world.submit(long_prompt(300), 1) for _ in range(4)]
        world.step(after)
        world.stepper.abort(leader.request.request_id)
        world.run()
        assert leader.reason() is FinishReason.ABORTED
        assert all(answer.tokens() == world.expected(answer) for answer in followers)
        assert world.model.computed == 300

    def test_a_follower_can_be_aborted_while_it_waits(self) -> None:
        world = World(400, settings=SMALL)
        leader = world.submit(long_prompt(300), 3)
        follower = world.submit(long_prompt(300), 3)
        world.step(2)
        world.stepper.abort(follower.request.request_id)
        world.run()
        assert leader.tokens() == world.expected(leader)
        assert follower.usage().completion_tokens == 0

    def test_other_tenants_compute_their_own(self) -> None:
        world = World(400, settings=SMALL)
        for tenant in ("a", "b"):
            for _ in range(3):
                world.submit(long_prompt(100), 1, tenant=tenant)
        world.run()
        assert world.model.computed == 200

    def test_a_preempted_leader_lets_its_followers_go(self) -> None:
        world = World(16)
        talker = world.submit("T", 60)
        world.step(20)
        answers = [world.submit(long_prompt(24), 8) for _ in range(3)]
        world.run()
        for answer in (talker, *answers):
            assert answer.tokens() == world.expected(answer)
