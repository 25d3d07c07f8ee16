"""The engine and its thread: streams to an event loop, limits, failures and the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hotprefix.base.errors import ContextLengthExceeded, Draining, InvalidRequest, Overloaded
from hotprefix.base.ids import RequestId
from hotprefix.engine.engine import Engine, EngineLimits
from hotprefix.engine.front import EngineFront, ServedModel
from hotprefix.engine.request import Delta, FinishReason, GenerationRequest, Grammar, GrammarKind, Sampling
from hotprefix.engine.runner import Row
from hotprefix.engine.settings import EngineSettings
from tests.engine.fake_model import VOCAB, FakeModel, byte_tokenizer, letters
from tests.engine.worlds import World

PROMPT = "the quick brown fox jumps over the lazy dog"
PATIENCE = 60


class NoTemplate:
    """The engine never asks for it."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


class Gate:
    """Lets the model's passes through one by one, so that a test can act in between."""

    def __init__(self, model: FakeModel) -> None:
        self._allowed = threading.Semaphore(0)
        self._arrived = threading.Semaphore(0)
        self._open = threading.Event()
        self._run = model.run
        model.run = self._gated  # type: ignore[method-assign]

    def _gated(self, rows: list[Row]) -> NDArray[np.float32]:
        if not self._open.is_set():
            self._arrived.release()
            assert self._allowed.acquire(timeout=PATIENCE)
        return self._run(rows)

    def wait(self) -> None:
        """Until a pass is at the gate."""
        assert self._arrived.acquire(timeout=PATIENCE)

    def let_through(self) -> None:
        """Let that pass go on."""
        self._allowed.release()

    def open(self) -> None:
        """No more gate."""
        self._open.set()
        self._allowed.release()


def build(world: World, *, context: int = 10_000, waiting: int = 100) -> Engine:
    model = ServedModel("fake", (), context, 0, byte_tokenizer(), NoTemplate(), "f" * 8)
    tokens = world.pool.size * world.cache.block_size
    return Engine(model, world.stepper, EngineLimits(context, tokens, waiting), world.clock)


@contextmanager
def running(world: World, **limits: int) -> Iterator[Engine]:
    """A started engine; afterwards it is stopped and has leaked nothing."""
    engine = build(world, **limits)
    engine.start()
    try:
        assert engine.wait_ready(PATIENCE)
        assert engine.ready
        world.model.computed = 0
        yield engine
    finally:
        engine.stop()
    assert not engine.ready
    assert engine.in_flight == 0
    world.check()
    world.check_nothing_leaked()


def request(prompt: str, max_tokens: int | None = 8, name: str = "r", **options: Any) -> GenerationRequest:
    n = options.pop("n", 1)
    sampling = Sampling(max_tokens=max_tokens, temperature=0.0, **options)
    return GenerationRequest(RequestId(name), letters(prompt), sampling, n)


async def collect(stream: AsyncIterator[Delta]) -> list[Delta]:
    return [delta async for delta in stream]


def tokens(deltas: list[Delta]) -> list[int]:
    return [token for delta in deltas for token in delta.token_ids]


def run(main: Callable[[], Any]) -> Any:
    async def limited() -> Any:
        return await asyncio.wait_for(main(), PATIENCE)

    return asyncio.run(limited())


class TestStreams:
    def test_a_stream_ends_with_its_last_delta(self) -> None:
        world = World()
        with running(world) as engine:
            front: EngineFront = engine
            deltas = run(lambda: collect(front.stream(request(PROMPT))))
        assert tokens(deltas) == world.model.greedy(letters(PROMPT), 8)
        assert [delta.last for delta in deltas] == [False] * (len(deltas) - 1) + [True]
        assert deltas[-1].finish_reason is FinishReason.LENGTH
        assert deltas[-1].usage is not None and deltas[-1].usage.completion_tokens == 8

    def test_many_streams_at_once(self) -> None:
        world = World(400, settings=EngineSettings(prefill_chunk=32, mixed_chunk=16))
        prompts = [PROMPT[: 5 + number] + "!" * (number % 3) for number in range(25)]

        async def main(engine: Engine) -> list[list[Delta]]:
            streams = [engine.stream(request(text, 9, f"r{at}")) for at, text in enumerate(prompts)]
            return list(await asyncio.gather(*map(collect, streams)))

        with running(world) as engine:
            answers = run(lambda: main(engine))
        for prompt, deltas in zip(prompts, answers, strict=True):
            assert tokens(deltas) == world.model.greedy(letters(prompt), 9)

    def test_streams_in_several_loops(self) -> None:
        world = World(200)
        results: dict[int, list[int]] = {}

        def serve(engine: Engine, number: int) -> None:
            prompt = PROMPT[number:]
            results[number] = tokens(run(lambda: collect(engine.stream(request(prompt, 9, f"r{number}")))))

        with running(world) as engine:
            threads = [threading.Thread(target=serve, args=(engine, number)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(PATIENCE)
        assert results == {n: world.model.greedy(letters(PROMPT[n:]), 9) for n in range(4)}

    def test_the_warm_up_leaves_the_cache_empty(self) -> None:
        world = World()
        with running(world):
            assert world.cache.gauges().cached == 0


class TestLeaving:
    def test_closing_a_stream_early_frees_its_blocks(self) -> None:
        world, is_closed = World(), threading.Event()
        compute = world.model.run

        def after_the_first(rows: Sequence[Row]) -> NDArray[np.float32]:
            if world.observer.firsts:
                is_closed.wait(10)  # else a fast model has said all before the client goes
            return compute(rows)

        world.model.run = after_the_first  # type: ignore[method-assign]

        async def main(engine: Engine) -> None:
            async with aclosing(engine.stream(request(PROMPT, None))) as stream:
                async for _ in stream:
                    break
            is_closed.set()
            # The next request is served after the abort: whatever the first held is free by then.
            deltas = await collect(engine.stream(request("other", 1, "next")))
            assert deltas[-1].last

        with running(world) as engine:
            run(lambda: main(engine))
            assert engine.in_flight == 0
        assert world.cache.gauges().private == world.cache.gauges().held == 0
        assert world.observer.ended == [FinishReason.ABORTED, FinishReason.LENGTH]

    def test_a_cancelled_reader_aborts_its_request(self) -> None:
        world = World()

        async def main(engine: Engine) -> None:
            task = asyncio.create_task(collect(engine.stream(request(PROMPT, None))))
            await asyncio.sleep(0)
            gate.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            gate.open()
            await collect(engine.stream(request("other", 1, "next")))

        with running(world) as engine:
            gate = Gate(world.model)
            run(lambda: main(engine))
        assert world.observer.ended == [FinishReason.ABORTED, FinishReason.LENGTH]

    def test_abort_ends_the_stream_with_a_last_delta(self) -> None:
        world = World()

        async def main(engine: Engine) -> list[Delta]:
            received = []
            async for delta in engine.stream(request(PROMPT, None)):
                received.append(delta)
                engine.abort(RequestId("r"))
                engine.abort(RequestId("nobody"))
            return received

        with running(world) as engine:
            deltas = run(lambda: main(engine))
        assert deltas[-1].last
        assert deltas[-1].finish_reason in (FinishReason.ABORTED, FinishReason.LENGTH)

    def test_a_stream_that_is_never_read_submits_nothing(self) -> None:
        world = World()

        async def main(engine: Engine) -> None:
            stream = engine.stream(request(PROMPT))
            await stream.aclose()  # type: ignore[attr-defined]

        with running(world) as engine:
            run(lambda: main(engine))
            assert engine.in_flight == 0
        assert world.model.computed == 0


class TestRefusals:
    @pytest.mark.parametrize(
        ("prompt", "context", "error", "words"),
        [
            ([], 100, InvalidRequest, "empty"),
            ([VOCAB], 100, InvalidRequest, "Token ids"),
            ([-1], 100, InvalidRequest, "Token ids"),
            ([5] * 100, 100, ContextLengthExceeded, "context is 100 tokens"),
            ([5] * 256, 1000, ContextLengthExceeded, "--kv-arena"),
        ],
    )
    def test_what_can_not_be_served(
        self, prompt: list[int], context: int, error: type[Exception], words: str
    ) -> None:
        world = World()
        bad = GenerationRequest(RequestId("r"), prompt)
        with running(world, context=context) as engine:
            with pytest.raises(error, match=words):
                engine.check(bad)
            with pytest.raises(error, match=words):
                run(lambda: collect(engine.stream(bad)))
            assert engine.in_flight == 0

    def test_the_longest_prompt_is_served_again_and_again(self) -> None:
        world = World()
        longest = GenerationRequest(RequestId("r"), [5] * 255, Sampling(temperature=0.0))
        with running(world) as engine:
            for _ in range(3):
                deltas = run(lambda: collect(engine.stream(longest)))
                assert len(tokens(deltas)) == 1

    def test_a_bad_grammar(self) -> None:
        with running(World()) as engine:
            with pytest.raises(InvalidRequest):
                engine.submit(request(PROMPT, grammar=Grammar(GrammarKind.REGEX, "([")), lambda delta: None)
            assert engine.in_flight == 0

    def test_a_full_line(self) -> None:
        world = World()
        with running(world, waiting=2) as engine:
            gate = Gate(world.model)
            for number in range(2):
                engine.submit(request(PROMPT, 2, f"r{number}"), lambda delta: None)
            with pytest.raises(Overloaded, match="2 requests"):
                engine.submit(request(PROMPT, 2, "late"), lambda delta: None)
            gate.open()

    def test_the_line_is_open_again_once_a_request_has_ended(self) -> None:
        world = World()
        with running(world, waiting=1) as engine:
            for number in range(5):
                run(lambda number=number: collect(engine.stream(request(PROMPT, 2, f"r{number}"))))

    def test_two_requests_of_one_name(self) -> None:
        world = World()
        with running(world) as engine:
            gate = Gate(world.model)
            engine.submit(request(PROMPT, 2), lambda delta: None)
            with pytest.raises(InvalidRequest, match="in flight"):
                engine.submit(request("other", 2), lambda delta: None)
            assert engine.in_flight == 1
            gate.open()


class TestFailures:
    def test_a_failing_step_ends_its_requests_and_the_next_is_served(self) -> None:
        world = World()

        async def main(engine: Engine) -> tuple[list[list[Delta]], list[Delta]]:
            streams = [engine.stream(request(PROMPT[number:], 9, f"r{number}", n=2)) for number in range(3)]
            tasks = [asyncio.create_task(collect(stream)) for stream in streams]
            await asyncio.sleep(0)  # all three are in the line
            world.model.failures.append(RuntimeError("no luck"))
            gate.open()
            failed = list(await asyncio.gather(*tasks))
            return failed, await collect(engine.stream(request(PROMPT, 9, "next")))

        with running(world) as engine:
            gate = Gate(world.model)
            failed, served = run(lambda: main(engine))
            assert engine.ready
        # The first pass failed and took all with it that were in the line by then.
        errors = [delta for deltas in failed for delta in deltas if delta.finish_reason is FinishReason.ERROR]
        assert {delta.index for delta in errors} == {0, 1}
        for deltas in failed:
            assert deltas[-1].last
            assert sorted(delta.index for delta in deltas if delta.finish_reason) == [0, 1]
        assert tokens(served) == world.model.greedy(letters(PROMPT), 9)

    def test_the_client_reads_no_traceback(self) -> None:
        world = World()
        with running(world) as engine:
            world.model.failures.append(RuntimeError("secret detail"))
            deltas = run(lambda: collect(engine.stream(request(PROMPT))))
        assert deltas[-1].finish_reason is FinishReason.ERROR
        assert deltas[-1].error is not None and "secret" not in deltas[-1].error

    def test_a_failing_warm_up_makes_no_ready_engine(self) -> None:
        world = World()
        world.model.failures.append(RuntimeError("no luck"))
        engine = build(world)
        engine.start()
        assert engine.wait_ready(PATIENCE)  # nobody waits for ever
        engine.stop()
        assert not engine.ready
        with pytest.raises(Draining):
            engine.check(request(PROMPT))


class TestStopping:
    def test_stop_ends_everybody(self) -> None:
        world = World(settings=EngineSettings(max_running=2))
        ends: list[Delta] = []
        with running(world) as engine:
            gate = Gate(world.model)
            for number in range(5):
                engine.submit(request(PROMPT[number:], None, f"r{number}"), ends.append)
            gate.wait()
            stopper = threading.Thread(target=engine.stop)
            stopper.start()
            while engine.ready:
                stopper.join(0.001)
            gate.open()
            stopper.join(PATIENCE)
            assert not stopper.is_alive()
        last = [delta for delta in ends if delta.last]
        assert len(last) == 5
        assert all(delta.finish_reason is FinishReason.ABORTED and delta.error for delta in last)

    def test_after_stop_nothing_is_taken(self) -> None:
        world = World()
        with running(world) as engine:
            pass
        with pytest.raises(Draining):
            engine.submit(request(PROMPT), lambda delta: None)
        with pytest.raises(Draining):
            run(lambda: collect(engine.stream(request(PROMPT))))
        engine.abort(RequestId("r"))
        engine.stop()
        assert engine.in_flight == 0

    def test_stop_without_work_returns(self) -> None:
        with running(World()) as engine:
            engine.stop()
            engine.stop()
