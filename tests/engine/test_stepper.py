"""Answers, step by step, over the fake model: what is said, why it ends, what it cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hotprefix.base.errors import InvalidRequest
from hotprefix.base.ids import BlockKey, RequestId
from hotprefix.engine.request import FinishReason, Grammar, GrammarKind, Usage
from hotprefix.engine.settings import DecodeMode, EngineSettings
from tests.engine.fake_model import EOS, letters
from tests.engine.worlds import LOWER, World

PROMPT = "the quick brown fox jumps over the lazy dog"


class TestReuse:
    def test_an_exact_repeat_computes_no_prompt_token(self) -> None:
        world = World()
        first = world.ask(PROMPT, 1)
        assert world.model.computed == len(PROMPT)
        second = world.ask(PROMPT, 1)
        assert world.model.computed == len(PROMPT)
        assert second.tokens() == first.tokens() == world.expected(first)
        assert second.usage() == Usage(len(PROMPT), len(PROMPT), 1)

    def test_an_exact_repeat_goes_on_decoding_in_the_step_that_answers_it(self) -> None:
        world = World()
        world.ask(PROMPT, 3)
        again = world.submit(PROMPT, 3)
        world.step()
        assert len(again.tokens()) == 2
        world.run()

    def test_a_shared_prefix_is_computed_once(self) -> None:
        world = World()
        world.ask(PROMPT + " first", 4)
        before = world.model.computed
        second = world.ask(PROMPT + " other", 1)
        assert world.model.computed - before == len("other")
        assert second.usage().cached_tokens == len(PROMPT) + 1

    def test_the_next_turn_reuses_what_was_answered(self) -> None:
        world = World()
        first = world.ask(PROMPT, 9)
        before = world.model.computed
        turn = [*letters(PROMPT), *first.tokens(), *letters(" and now?")]
        second = world.ask(turn, 1)
        # The last token of the answer was never fed back, so it has no KV yet.
        assert second.usage().cached_tokens == len(PROMPT) + 8
        assert world.model.computed - before == len(turn) - len(PROMPT) - 8
        assert second.tokens() == world.expected(second)

    def test_tenants_do_not_share(self) -> None:
        world = World()
        world.ask(PROMPT, 1, tenant="one")
        assert world.ask(PROMPT, 1, tenant="two").usage().cached_tokens == 0
        assert world.ask(PROMPT, 1, tenant="one").usage().cached_tokens == len(PROMPT)

    def test_switched_off_nothing_is_reused(self) -> None:
        world = World(settings=EngineSettings(policy=None))
        answers = [world.ask(PROMPT, 5) for _ in range(2)]
        assert [answer.usage().cached_tokens for answer in answers] == [0, 0]
        assert answers[0].tokens() == answers[1].tokens() == world.expected(answers[0])

    def test_a_repeat_without_kept_logits_computes_two_tokens(self) -> None:
        world = World(settings=EngineSettings(logits_bytes=0))
        world.ask(PROMPT, 1)
        before = world.model.computed
        again = world.ask(PROMPT, 1)
        assert world.model.computed - before == 2
        assert again.tokens() == world.expected(again)


class Heard:
    """What was recorded."""

    def __init__(self) -> None:
        self.requests: list[tuple[float, str, list[BlockKey], tuple[int, int]]] = []

    def write(self, at: float, scope: str, keys: Sequence[BlockKey], tokens: tuple[int, int]) -> None:
        self.requests.append((at, scope, list(keys), tokens))


class TestRecording:
    def test_every_request_that_was_admitted_is_recorded_once(self) -> None:
        world, heard = World(), Heard()
        world.stepper.recorder = heard
        world.ask(PROMPT, 5)
        world.ask(PROMPT[:6], 3)
        (at, scope, keys, tokens), (later, same, fewer, _) = heard.requests
        assert tokens == (len(PROMPT), 5)
        assert (len(keys), len(fewer)) == (11, 2)
        assert keys[0] == fewer[0]
        assert keys[1] != fewer[1], "of the second block only half is the same"
        assert scope == same
        assert at <= later

    def test_a_request_with_several_answers_is_one(self) -> None:
        world, heard = World(), Heard()
        world.stepper.recorder = heard
        world.ask(PROMPT, 4, n=3)
        assert [tokens for *_, tokens in heard.requests] == [(len(PROMPT), 12)]


class TestExactness:
    """The same answer with the cache on, off, in any chunks, in any company."""

    @pytest.mark.parametrize("policy", [None, "lru", "slru", "adaptive"])
    @pytest.mark.parametrize("chunk", [1, 3, 7, 512])
    @pytest.mark.parametrize("granularity", [1, 4])
    def test_answers_do_not_depend_on_how_they_are_computed(
        self, policy: str | None, chunk: int, granularity: int
    ) -> None:
        settings = EngineSettings(policy=policy, prefill_chunk=chunk, mixed_chunk=chunk)
        world = World(200, settings=settings, granularity=granularity)
        prompts = [PROMPT[:length] for length in (1, 2, 3, 4, 5, 17, 32, 43)] + ["x" + PROMPT, PROMPT]
        for _ in range(2):
            for prompt in prompts:
                world.submit(prompt, 11)
            world.run()
        assert [answer.tokens() for answer in world.answers] == [world.expected(a) for a in world.answers]

    @pytest.mark.parametrize("granularity", [1, 4])
    def test_exact_decoding_never_runs_a_single_token(self, granularity: int) -> None:
        """The fake model insists on passes of two tokens, but for the first of a quantised block."""
        world = World(settings=EngineSettings(decode=DecodeMode.EXACT), granularity=granularity)
        for prompt in (PROMPT, PROMPT, PROMPT[:20], PROMPT[:20], PROMPT[:21], "a"):
            answer = world.ask(prompt, 13)
            assert answer.tokens() == world.expected(answer)

    @pytest.mark.parametrize("decode", DecodeMode)
    def test_a_quantised_block_is_never_written_to_once_it_is_shared(self, decode: DecodeMode) -> None:
        """Even the same token would have all its keys quantised anew."""
        world = World(settings=EngineSettings(decode=decode), granularity=4)
        for length in (20, 20, 24, 21, 40):
            world.submit(PROMPT[:length], 9)
            world.run()
        assert world.model.sealed_writes == 0

    @pytest.mark.parametrize("temperature", [0.5, 1.5])
    def test_a_seed_draws_the_same_in_any_company(self, temperature: float) -> None:
        alone = World().ask(PROMPT, 20, temperature=temperature, seed=7).tokens()
        world = World(200, settings=EngineSettings(prefill_chunk=8, mixed_chunk=8))
        for number in range(5):
            world.submit(PROMPT[number:], 25, temperature=1.0, seed=number)
        world.step(3)
        answer = world.submit(PROMPT, 20, temperature=temperature, seed=7)
        world.run()
        assert answer.tokens() == alone


class TestEnds:
    def test_length(self) -> None:
        answer = World().ask(PROMPT, 5)
        assert answer.reason() is FinishReason.LENGTH
        assert len(answer.tokens()) == 5
        assert answer.usage().completion_tokens == 5

    def test_without_a_limit_the_room_is_the_limit(self) -> None:
        world = World(16)
        answer = world.ask(PROMPT, None)
        assert answer.reason() is FinishReason.LENGTH
        assert answer.tokens() == world.expected(answer)
        assert len(PROMPT) + len(answer.tokens()) == 16 * 4

    def test_end_of_answer(self) -> None:
        world = World(alphabet=[EOS, *LOWER[:3]])
        answer = world.ask(PROMPT, 200)
        assert answer.reason() is FinishReason.STOP
        assert answer.tokens() == world.expected(answer)
        assert EOS not in answer.tokens()
        assert answer.end().stop_sequence is None
        # The end token was drawn: it counts.
        assert answer.usage().completion_tokens == len(answer.tokens()) + 1

    def test_end_of_answer_ignored(self) -> None:
        world = World(alphabet=[EOS])
        answer = world.ask(PROMPT, 6, ignore_eos=True)
        assert answer.reason() is FinishReason.LENGTH
        assert answer.tokens() == [EOS] * 6
        assert answer.text() == ""

    def test_stop_token(self) -> None:
        world = World()
        whole = world.ask(PROMPT, 20).tokens()
        answer = world.ask(PROMPT, 20, stop_token_ids=frozenset([whole[7]]))
        assert answer.reason() is FinishReason.STOP
        assert answer.tokens() == whole[: whole.index(whole[7])]

    def test_stop_string_over_several_tokens(self) -> None:
        world = World()
        whole = world.ask(PROMPT, 20).text()
        stop = whole[6:9]
        answer = world.ask(PROMPT, 20, stop=("zzzzz", stop))
        assert answer.reason() is FinishReason.STOP
        assert answer.end().stop_sequence == stop
        assert answer.text() == whole[: whole.index(stop)]

    def test_text_that_looks_like_a_stop_is_given_in_the_end(self) -> None:
        world = World()
        whole = world.ask(PROMPT, 8).text()
        answer = world.ask(PROMPT, 8, stop=(whole[-3:] + "!",))
        assert answer.reason() is FinishReason.LENGTH
        assert answer.text() == whole

    def test_the_end_of_a_grammar(self) -> None:
        world = World()
        answer = world.ask(PROMPT, 50, grammar=Grammar(GrammarKind.REGEX, "[xyz]{4}"))
        assert answer.reason() is FinishReason.STOP
        assert len(answer.text()) == 4
        assert set(answer.text()) <= set("xyz")

    def test_a_bad_grammar_is_refused_before_anything_happens(self) -> None:
        world = World()
        with pytest.raises(InvalidRequest):
            world.submit(PROMPT, grammar=Grammar(GrammarKind.REGEX, "(["))
        assert world.stepper.idle

    def test_broken_characters_are_given_in_the_end(self) -> None:
        world = World(alphabet=[letters("é")[0]])
        answer = world.ask(PROMPT, 3)
        assert answer.text() == "\ufffd" * 3
        assert len(answer.tokens()) == 3

    def test_log_probabilities_belong_to_their_tokens(self) -> None:
        world = World(alphabet=[EOS, *LOWER[:3]])
        answer = world.ask(PROMPT, 200, top_logprobs=2)
        drawn = [entry.token_id for delta in answer.deltas for entry in delta.logprobs]
        assert drawn == [*answer.tokens(), EOS]
        assert all(len(e.top) == 2 and e.logprob <= 0 for d in answer.deltas for e in d.logprobs)


class TestChoices:
    def test_siblings_share_the_prompt(self) -> None:
        world = World()
        answer = world.ask(PROMPT, 1, n=5, temperature=1.0, seed=3)
        assert world.model.computed == len(PROMPT)
        assert answer.usage() == Usage(len(PROMPT), 0, 5)

    def test_siblings_differ_and_each_is_as_if_alone(self) -> None:
        world = World()
        together = world.ask(PROMPT, 12, n=3, temperature=1.0, seed=5)
        alone = [World().ask(PROMPT, 12, temperature=1.0, seed=5 + choice) for choice in range(3)]
        assert [together.tokens(choice) for choice in range(3)] == [answer.tokens() for answer in alone]
        assert len({tuple(answer.tokens()) for answer in alone}) == 3

    def test_a_request_ends_with_its_last_choice(self) -> None:
        world = World(alphabet=[EOS, *LOWER[:4]])
        answer = world.ask(PROMPT, 40, n=6, temperature=1.0, seed=1)
        assert len({len(answer.tokens(choice)) for choice in range(6)}) > 1
        sent = sum(len(answer.tokens(choice)) for choice in range(6))
        stops = sum(answer.reason(choice) is FinishReason.STOP for choice in range(6))
        assert answer.usage().completion_tokens == sent + stops
        assert len(world.observer.ended) == 1


class TestAborts:
    def test_a_running_request_frees_its_blocks_at_once(self) -> None:
        world = World()
        answer = world.submit(PROMPT, 100, n=2)
        world.step(5)
        assert world.cache.gauges().private > 0
        world.stepper.abort(answer.request.request_id)
        world.check_nothing_leaked()
        assert [answer.reason(choice) for choice in (0, 1)] == [FinishReason.ABORTED] * 2
        answer.check_ended_once()
        assert world.stepper.idle

    def test_a_waiting_request_can_be_aborted(self) -> None:
        world = World(settings=EngineSettings(max_running=1))
        first, second = world.submit(PROMPT, 30), world.submit("another", 30)
        world.step(3)
        world.stepper.abort(second.request.request_id)
        assert second.reason() is FinishReason.ABORTED
        world.run()
        assert first.tokens() == world.expected(first)

    def test_aborting_twice_or_nobody_does_nothing(self) -> None:
        world = World()
        answer = world.submit(PROMPT)
        world.step()
        for name in (answer.request.request_id, answer.request.request_id, RequestId("nobody")):
            world.stepper.abort(name)
        answer.check_ended_once()
        world.run()

    def test_what_was_computed_before_the_abort_is_reused(self) -> None:
        world = World(settings=EngineSettings(prefill_chunk=16))
        answer = world.submit(PROMPT)
        world.step()
        world.stepper.abort(answer.request.request_id)
        assert world.ask(PROMPT, 2).usage().cached_tokens == 16

    def test_end_all_ends_the_running_and_the_waiting(self) -> None:
        world = World(settings=EngineSettings(max_running=2))
        answers = [world.submit(PROMPT[start:], 50, n=2) for start in range(4)]
        world.step(3)
        world.stepper.end_all(FinishReason.ERROR, "why")
        for answer in answers:
            answer.check_ended_once()
            assert answer.end().error == "why"
        world.run()


class TestFailures:
    @pytest.mark.parametrize("steps", [0, 1, 2, 6])
    def test_after_a_failing_run_nothing_wrong_is_left(self, steps: int) -> None:
        world = World(settings=EngineSettings(prefill_chunk=16, mixed_chunk=16))
        answers = [world.submit(PROMPT[start:], 20) for start in range(3)]
        world.step(steps)
        world.model.failures.append(RuntimeError("no luck"))
        with pytest.raises(RuntimeError, match="no luck"):
            world.step()
        world.stepper.end_all(FinishReason.ERROR, "sorry")
        assert all(answer.reason() is FinishReason.ERROR for answer in answers)
        world.run()
        for start in range(3):
            again = world.ask(PROMPT[start:], 20)
            assert again.tokens() == world.expected(again)


class TestObserver:
    def test_it_hears_of_everything(self) -> None:
        world = World()
        world.ask(PROMPT, 4)
        world.ask(PROMPT, 4, n=2)
        seen = world.observer
        assert seen.matched == [(len(PROMPT), 0), (len(PROMPT), len(PROMPT))]
        assert seen.drawn == 12
        assert len(seen.firsts) == 2
        assert len(seen.gaps) == 3 + 2 * 3
        assert seen.ended == [FinishReason.LENGTH] * 2

    def test_times_are_the_clocks(self) -> None:
        world = World(settings=EngineSettings(max_running=1))
        first = world.submit(PROMPT, 5)
        second = world.submit("other", 2)
        world.run()
        timings = first.deltas[-1].timings, second.deltas[-1].timings
        assert timings[0] is not None and timings[1] is not None
        assert timings[0].queued == timings[0].first_token == 0
        assert timings[0].total == pytest.approx(0.004)
        assert timings[1].queued == pytest.approx(0.005)
        assert world.observer.gaps == pytest.approx([0.001] * 5)

    def test_gauges_come_a_few_times_a_second(self) -> None:
        world = World()
        world.submit(PROMPT, 100)
        world.step(50)
        assert world.observer.last is None
        world.clock.advance(1)
        world.step()
        gauges = world.observer.last
        assert gauges is not None
        assert (gauges.running, gauges.waiting) == (1, 0)
        assert sum(gauges.blocks.values()) == 64
        assert gauges.arena_bytes == 64 - gauges.blocks["free"]

    def test_evictions_are_told_once(self) -> None:
        world = World(16)
        for number in range(10):
            world.ask(f"{number}" * 20, 3)
        world.stepper.flush_gauges()
        world.stepper.flush_gauges()
        assert world.observer.evictions == world.cache.gauges().evicted > 0


@pytest.mark.parametrize("blocks", [4, 5, 8, 64])
def test_warming_up_leaves_nothing_behind(blocks: int) -> None:
    world = World(blocks)
    world.stepper.warm_up()
    assert world.model.computed > 0
    world.check_nothing_leaked()
    answer = world.ask("hello", 4)
    assert answer.tokens() == world.expected(answer)


def test_pins_go_before_an_answer_ends_for_want_of_blocks() -> None:
    world = World(16)
    stem = "abcdefghijklmnopqrstuvwxyz"
    world.ask(stem, 2)
    assert world.stepper.pin("kept", "", letters(stem)) == len(stem)
    answer = world.submit("z" * 20, 40, ignore_eos=True)
    for _ in range(100):
        world.step()
    assert world.stepper.idle
    assert answer.tokens() == world.expected(answer)
    assert len(answer.tokens()) == 40
