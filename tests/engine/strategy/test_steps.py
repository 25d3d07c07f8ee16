"""Strategies in a whole engine around the byte-true fake model: what is answered is what the twin says."""

from __future__ import annotations

import pytest

from hotprefix.base.errors import ContextLengthExceeded, InvalidRequest
from hotprefix.engine.request import FinishReason
from hotprefix.engine.settings import EngineSettings
from hotprefix.engine.strategy.choice import StrategyChoice, StrategyName
from hotprefix.engine.strategy.settings import StrategySettings
from tests.engine.strategy.truth import STATIC, mixed, run, step, window
from tests.engine.worlds import LOWER, World

TEXT = ("the quick brown fox jumps over the lazy dog and then it sleeps for a while in the sun " * 4)[:300]


def ask(world: World, prompt: str, max_tokens: int, strategy: StrategyChoice | None) -> list[int]:
    answer = world.submit(prompt, max_tokens, strategy=strategy)
    run(world)
    assert answer.tokens() == world.expected(answer)
    return answer.tokens()


CUTTING = [
    window(),
    window(sinks=0),
    window(32, sinks=7, keys=0.25),
    window(32, keys=0.1),
    window(40, pins=((9, 14), (30, 33)), keys=0.25),
    mixed(),
    mixed(32, recent=9, sinks=2),
]


class TestCutting:
    @pytest.mark.parametrize("strategy", CUTTING)
    @pytest.mark.parametrize("length", [1, 15, 16, 17, 33, 100, 300])
    def test_any_length_is_answered_as_the_twin_does(self, strategy: StrategyChoice, length: int) -> None:
        world = World(24)
        ask(world, TEXT[:length], 40, strategy)

    @pytest.mark.parametrize("strategy", CUTTING)
    def test_without_a_cache_too(self, strategy: StrategyChoice) -> None:
        ask(World(24, settings=EngineSettings(policy=None)), TEXT[:120], 40, strategy)

    @pytest.mark.parametrize("strategy", CUTTING)
    @pytest.mark.parametrize("chunk", [2, 3, 7, 64])
    def test_chunks_make_no_difference(self, strategy: StrategyChoice, chunk: int) -> None:
        world = World(24, settings=EngineSettings(prefill_chunk=chunk, mixed_chunk=chunk))
        ask(world, TEXT[:130], 20, strategy)

    @pytest.mark.parametrize("strategy", CUTTING)
    def test_what_fits_is_answered_as_without_a_strategy(self, strategy: StrategyChoice) -> None:
        world = World(40)
        short = TEXT[:6]
        cut = world.ask(short, 10, strategy=strategy)
        plain = world.ask(short, 10)
        assert cut.tokens() == plain.tokens()
        assert cut.usage().dropped_tokens == 0

    def test_usage_tells_all_of_the_prompt_and_what_was_dropped(self) -> None:
        world = World(24)
        answer = world.submit(TEXT[:100], 10, strategy=window(32))
        run(world)
        usage = answer.usage()
        assert (usage.prompt_tokens, usage.completion_tokens) == (100, 10)
        # 109 tokens were computed (nothing followed the last one), and at most 32 fit at a time.
        assert 109 - 32 <= usage.dropped_tokens <= 109 - 24
        first = answer.deltas[0].usage
        assert first is not None and 0 < first.dropped_tokens <= usage.dropped_tokens

    def test_the_beginning_of_a_long_prompt_is_reused_and_shared_blocks_stay_whole(self) -> None:
        world = World(40)
        world.ask(TEXT[:100], 4)
        answer = world.submit(TEXT[:100], 12, strategy=window(32))
        run(world)
        assert answer.usage().cached_tokens == 32
        assert answer.tokens() == world.expected(answer)
        assert world.ask(TEXT[:100], 4).usage().cached_tokens == 100

    def test_only_what_came_before_the_first_cut_can_be_reused(self) -> None:
        world = World(40)
        ask(world, TEXT[:100], 12, window(32))
        # A later request finds the first window, and nothing that was computed behind a gap.
        assert world.ask(TEXT[:100], 2).usage().cached_tokens == 32

    def test_a_second_long_request_waits_for_the_shared_part_only(self) -> None:
        world = World(60, settings=EngineSettings(prefill_chunk=8, mixed_chunk=8))
        first = world.submit(TEXT[:100], 6, strategy=window(32))
        step(world)
        second = world.submit(TEXT[:100], 6, strategy=window(32))
        while len(world.scheduler.running) < 2:
            step(world)
        assert not first.deltas, "it waited for the whole prompt"
        run(world)
        assert second.usage().cached_tokens == 32
        assert first.tokens() == second.tokens() == world.expected(first)

    def test_kept_logits_answer_no_prompt_that_was_cut_and_come_from_none(self) -> None:
        world = World(60)
        for strategy in (None, window(32), None, mixed(32), None):
            ask(world, TEXT[:100], 3, strategy)

    def test_preempted_in_a_small_arena_it_still_says_the_same(self) -> None:
        world = World(20, settings=EngineSettings(prefill_chunk=16, mixed_chunk=8))
        answers = [world.submit(TEXT[start : start + 60], 40, strategy=window(32)) for start in range(3)]
        answers += [world.submit(TEXT[start : start + 20], 30) for start in range(3, 6)]
        run(world)
        for answer in answers:
            assert answer.tokens() == world.expected(answer)
        assert world.observer.preemptions

    def test_sequences_that_share_their_window_are_cut_apart(self) -> None:
        world = World(60)
        answers = [world.submit(TEXT[:64], 50, n=1, strategy=window(32), seed=seed) for seed in range(3)]
        answers.append(world.submit(TEXT[:64], 50, strategy=mixed(32)))
        run(world)
        for answer in answers:
            assert answer.tokens() == world.expected(answer)

    def test_choices_of_one_request_agree(self) -> None:
        world = World(60)
        answer = world.submit(TEXT[:50], 30, n=3, strategy=window(32))
        run(world)
        assert answer.tokens(0) == answer.tokens(1) == answer.tokens(2) == world.expected(answer)

    def test_an_abort_in_the_middle_gives_everything_back(self) -> None:
        world = World(30)
        answer = world.submit(TEXT[:200], 30, strategy=window(32))
        step(world, 9)
        assert answer.request is not None and world.scheduler.running[0].holding is not None
        assert world.scheduler.running[0].holding.dropped > 0
        world.stepper.abort(answer.request.request_id)
        world.check_nothing_leaked()

    def test_a_thousand_windows_in_a_bounded_part_of_the_arena(self) -> None:
        world = World(16, alphabet=LOWER)
        strategy = StrategyChoice(StrategyName.WINDOW, window=16, sinks=2)
        answer = world.submit(TEXT[:30], 1000, strategy=strategy, ignore_eos=True)
        run(world)
        assert answer.reason() is FinishReason.LENGTH
        assert len(answer.tokens()) == 1000
        assert answer.usage().dropped_tokens >= 1000


class TestStatic:
    def test_everything_is_taken_at_the_start(self) -> None:
        world = World(32)
        world.submit(TEXT[:20], 40, strategy=STATIC)
        world.step(2)
        assert len(world.scheduler.running[0].holding.table) == 15  # type: ignore[union-attr]
        run(world)

    def test_it_is_never_set_back(self) -> None:
        world = World(24, settings=EngineSettings(prefill_chunk=16, mixed_chunk=16))
        others = [world.submit(TEXT[start : start + 12], 40) for start in range(3)]
        world.step(2)
        static = world.submit(TEXT[:10], 20, strategy=STATIC)
        run(world)
        assert static.tokens() == world.expected(static)
        assert world.observer.preemptions
        started = [batch for batch in world.scheduler.batches if static_in(world, batch.admitted)]
        assert len(started) == 1
        assert not any(static_in(world, batch.preempted) for batch in world.scheduler.batches)
        for answer in others:
            assert answer.tokens() == world.expected(answer)

    def test_a_dynamic_one_alone_among_static_ones_waits(self) -> None:
        world = World(16)
        static = [world.submit(TEXT[start : start + 8], 16, strategy=STATIC) for start in range(2)]
        dynamic = world.submit(TEXT[5:17], 30)
        run(world)
        for answer in (*static, dynamic):
            assert answer.tokens() == world.expected(answer)

    @pytest.mark.parametrize("prompt,answer", [(60, 10), (8, 60), (64, None)])
    def test_what_can_not_be_had_is_refused_with_the_numbers(self, prompt: int, answer: int | None) -> None:
        world = World(16)
        strategy = world.stepper.strategy_of(world.submit(TEXT[:8], 1, strategy=STATIC).request)
        with pytest.raises(ContextLengthExceeded) as caught:
            strategy.check(prompt, answer)
        assert "64 tokens" in str(caught.value)
        assert f"{prompt + (answer or 1)}" in str(caught.value)
        run(world)

    def test_the_prefix_is_shared_all_the_same(self) -> None:
        world = World(40)
        world.ask(TEXT[:40], 2)
        answer = world.submit(TEXT[:50], 10, strategy=STATIC)
        run(world)
        assert answer.usage().cached_tokens >= 40
        assert answer.tokens() == world.expected(answer)


class TestServer:
    def test_its_own_strategy_is_that_of_requests_that_name_none(self) -> None:
        strategy = StrategySettings(StrategyName.WINDOW, window=32, scorer="norm")
        world = World(24, settings=EngineSettings(strategy=strategy))
        answer = world.submit(TEXT[:200], 10)
        run(world)
        assert answer.usage().dropped_tokens > 0
        assert answer.tokens() == world.expected(answer)

    def test_a_document_that_static_refuses_runs_in_a_window(self) -> None:
        world = World(16)
        request = world.submit(TEXT[:8], 1, strategy=STATIC).request
        with pytest.raises(ContextLengthExceeded, match="'window'"):
            world.stepper.strategy_of(request).check(len(TEXT), 10)
        ask(world, TEXT, 10, window())

    @pytest.mark.parametrize("tokens", [1, 15, 33, 4000])
    def test_windows_that_do_not_fit_are_refused(self, tokens: int) -> None:
        world = World(16)
        with pytest.raises(InvalidRequest, match="16 to 32"):
            world.submit(TEXT[:8], 1, strategy=window(tokens))


def static_in(world: World, sequences: list) -> bool:  # type: ignore[type-arg]
    return any(sequence.strategy.name is StrategyName.STATIC for sequence in sequences)
