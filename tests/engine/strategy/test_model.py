"""Strategies on real graphs: tiny models with random weights, and the default model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from hotprefix.base.errors import ContextLengthExceeded, InvalidRequest, ModelError, UnsupportedModel
from hotprefix.base.ids import RequestId
from hotprefix.engine.request import GenerationRequest, Sampling
from hotprefix.engine.row_state import RowState
from hotprefix.engine.sampler import Drawn, Sampler
from hotprefix.engine.settings import DecodeMode, EngineSettings
from hotprefix.engine.strategy.choice import StrategyChoice, StrategyName
from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import ModelStore
from hotprefix.pages.rotary import Rotary
from tests.engine.bits import Answer, Bench, random_prompt
from tests.tiny_gguf import Shape, write_tiny_gguf

MIB = 1024 * 1024
VOCAB = 280


def bench(manifest: ModelManifest, name: StrategyName, mib: int = 16, **settings: object) -> Bench:
    settings.setdefault("scorer", "keydiff")
    strategy = StrategySettings(name, **settings)  # type: ignore[arg-type]
    return Bench(manifest, EngineSettings(arena_bytes=mib * MIB, strategy=strategy))


def answered(bench: Bench, prompt: list[int], tokens: int = 8) -> Answer:
    [answer] = bench.run([prompt], tokens)
    return answer


@pytest.fixture(scope="module")
def one_layer(tmp_path_factory: pytest.TempPathFactory) -> ModelManifest:
    folder = tmp_path_factory.mktemp("one")
    path = write_tiny_gguf(folder / "one.gguf", seed=3, shape=Shape(layers=1))
    return ModelStore(folder / "store").resolve(str(path))


@pytest.mark.parametrize("name", [StrategyName.WINDOW, StrategyName.MIXED, StrategyName.STATIC])
def test_what_fits_equals_dynamic_bit_for_bit(tiny_model: ModelManifest, name: StrategyName) -> None:
    prompt = random_prompt(Random(1), VOCAB, 200)
    plain = bench(tiny_model, StrategyName.DYNAMIC)
    other = bench(tiny_model, name, window=256)
    expected, found = answered(plain, prompt, 50), answered(other, prompt, 50)
    np.testing.assert_array_equal(other.logits(found), plain.logits(expected))
    assert found.tokens == expected.tokens


@pytest.mark.parametrize("keys", [0.0, 0.25])
@pytest.mark.parametrize("name", [StrategyName.WINDOW, StrategyName.MIXED])
def test_a_known_beginning_changes_no_bit_of_a_long_prompt(
    tiny_model: ModelManifest, name: StrategyName, keys: float
) -> None:
    prompt = random_prompt(Random(2), VOCAB, 700)
    cold = bench(tiny_model, name, window=256, keys=keys)
    warm = bench(tiny_model, name, window=256, keys=keys)
    answered(warm, [*prompt[:90], 7, 8, 9])
    expected = answered(cold, prompt)
    for known in (90, 256, 256):
        found = answered(warm, prompt)
        assert found.cached == known
        np.testing.assert_array_equal(warm.logits(found), cold.logits(expected))
        assert found.tokens == expected.tokens


class Recording(Sampler):
    """Keeps the logits behind every step, a copy of each row."""

    def __init__(self) -> None:
        self.all: list[NDArray[np.float32]] = []

    def sample(self, logits: NDArray[np.float32], rows: Sequence[RowState]) -> list[Drawn]:
        self.all += [row.copy() for row in logits]
        return super().sample(logits, rows)


def test_exact_decoding_and_prefill_give_the_same_bits_behind_cuts_too(tiny_model: ModelManifest) -> None:
    """So that an answer that was set back goes on as if it had not been."""
    strategy = StrategySettings(StrategyName.WINDOW, window=128, keys=0.0, scorer="keydiff")
    settings = EngineSettings(arena_bytes=16 * MIB, decode=DecodeMode.EXACT, strategy=strategy)
    decoded, prefilled = (Bench(tiny_model, settings) for _ in range(2))
    steps, last = Recording(), Recording()
    object.__setattr__(decoded.stepper._parts, "sampler", steps)
    object.__setattr__(prefilled.stepper._parts, "sampler", last)
    prompt = random_prompt(Random(12), VOCAB, 100)
    answer = answered(decoded, prompt, 72)
    # Cuts come behind 128 and 160 tokens; 29 and 61 leave a single token to compute behind one.
    for count in (20, 29, 30, 40, 61, 70):
        answered(prefilled, [*prompt, *answer.tokens[:count]], 1)
        np.testing.assert_array_equal(last.all[-1], steps.all[count])


def in_window(prompt: list[int]) -> list[int]:
    """The tokens in the cache behind a prompt, with a window of 128 without key tokens."""
    held: list[int] = []
    for position in range(len(prompt)):
        if len(held) == 128:
            held = held[:4] + held[4 + 32 :]
        held.append(position)
    return [prompt[place] for place in held]


class TestOneLayer:
    """Keys and values of a single layer follow from token and position alone. What a cut cache gives then
    must be what a computation of the kept tokens from nothing gives: the definition of the strategy."""

    @pytest.mark.parametrize("length", [129, 160, 161, 400, 1000])
    def test_a_window_equals_its_recomputation(self, one_layer: ModelManifest, length: int) -> None:
        prompt = random_prompt(Random(length), VOCAB, length)
        cut = bench(one_layer, StrategyName.WINDOW, window=128)
        plain = bench(one_layer, StrategyName.DYNAMIC)
        found = cut.logits(answered(cut, prompt, 1))
        expected = plain.logits(answered(plain, in_window(prompt), 1))
        # 16-bit keys, rounded anew each time that they moved: at most four times.
        spread = float(expected.max() - expected.min())
        assert np.abs(found - expected).max() <= 0.02 * spread
        assert correlation(found, expected) > 0.999

    def test_without_turning_the_keys_it_would_not(
        self, one_layer: ModelManifest, monkeypatch: pytest.MonkeyPatch
    ) -> None:

        prompt = random_prompt(Random(5), VOCAB, 400)
        plain = bench(one_layer, StrategyName.DYNAMIC)
        expected = plain.logits(answered(plain, in_window(prompt), 1))
        cut = bench(one_layer, StrategyName.WINDOW, window=128)
        monkeypatch.setattr(Rotary, "turned", lambda self, keys, cos, sin: keys.copy())
        found = cut.logits(answered(cut, prompt, 1))
        spread = float(expected.max() - expected.min())
        assert np.abs(found - expected).max() > 0.02 * spread


def correlation(left: NDArray[np.float32], right: NDArray[np.float32]) -> float:
    return float(np.corrcoef(left.ravel(), right.ravel())[0, 1])


@pytest.mark.parametrize("name", [StrategyName.WINDOW, StrategyName.MIXED])
def test_a_document_of_32k_tokens_in_bounded_memory(tiny_model: ModelManifest, name: StrategyName) -> None:
    """Sixteen times the model's context, in blocks for 512 tokens; `static` refuses it with the numbers."""
    world = bench(tiny_model, name, window=512, longest=40_000)
    document = random_prompt(Random(4), VOCAB, 32_768)
    request = GenerationRequest(RequestId("long"), document, Sampling(max_tokens=4, temperature=0))
    answer = Answer(None)  # type: ignore[arg-type]
    state = world.stepper.prepare(request, answer.put)
    world.engine.check(request)
    world.stepper.enqueue(state)
    most = 0
    while not world.stepper.idle:
        world.stepper.step()
        most = max(most, sum(len(s.holding.table) for s in state.sequences if s.holding is not None))
    assert len(answer.tokens) > 0
    assert most <= 512 // world.stepper.cache.block_size
    assert state.dropped_tokens >= 32_768 - 512
    static = bench(tiny_model, StrategyName.STATIC)
    with pytest.raises(ContextLengthExceeded, match=r"32,768 and 4 tokens, together 32,772.* 2,048 tokens"):
        static.engine.check(request)


class TestAttention:
    def test_telling_it_changes_no_bit(self, tiny_model: ModelManifest) -> None:
        prompt = random_prompt(Random(6), VOCAB, 150)
        plain = bench(tiny_model, StrategyName.DYNAMIC)
        watched = bench(tiny_model, StrategyName.WINDOW, window=256, scorer="attention")
        expected, found = answered(plain, prompt, 20), answered(watched, prompt, 20)
        np.testing.assert_array_equal(watched.logits(found), plain.logits(expected))
        assert found.tokens == expected.tokens

    def test_every_query_spends_all_of_its_attention(self, tiny_model: ModelManifest) -> None:
        world = bench(tiny_model, StrategyName.WINDOW, window=256, scorer="attention", keys=0.25)
        prompts = [random_prompt(Random(seed), VOCAB, length) for seed, length in ((7, 100), (8, 180))]
        requests = [
            GenerationRequest(RequestId(str(len(prompt))), prompt, Sampling(max_tokens=9, temperature=0))
            for prompt in prompts
        ]
        states = [world.stepper.prepare(request, lambda delta: None) for request in requests]
        for state in states:
            world.stepper.enqueue(state)
        world.stepper.step()
        for state in states:
            tally = state.sequences[0].tally
            assert tally is not None and len(tally) == len(state.request.prompt_ids)
            sums = tally._sums.sum(axis=1)
            # 32 queries of two heads each, in each of two layers.
            np.testing.assert_allclose(sums, 64, rtol=0.01)

    def test_it_judges_on_the_way(self, tiny_model: ModelManifest) -> None:
        prompt = random_prompt(Random(9), VOCAB, 900)
        judged = [
            answered(bench(tiny_model, StrategyName.WINDOW, window=256, scorer=scorer, keys=0.25), prompt, 30)
            for scorer in ("attention", "keydiff", "norm")
        ]
        assert len({tuple(answer.tokens) for answer in judged}) == 3


@pytest.mark.parametrize("precision", ["u8", "u4", "layered-u8"])
def test_quantised_arenas_refuse_to_cut(tiny_model: ModelManifest, precision: str) -> None:
    cutting = EngineSettings(
        arena_bytes=16 * MIB,
        kv_precision=precision,
        kv_16bit_layers=1,
        strategy=StrategySettings(StrategyName.WINDOW, scorer="keydiff"),
    )
    with pytest.raises(UnsupportedModel, match="--kv-precision"):
        Bench(tiny_model, cutting)
    settings = EngineSettings(arena_bytes=16 * MIB, kv_precision=precision, kv_16bit_layers=1)
    world = Bench(tiny_model, settings)
    request = GenerationRequest(
        RequestId("r"), [5] * 10, strategy=StrategyChoice(StrategyName.WINDOW, window=256)
    )
    with pytest.raises(InvalidRequest, match="16 or 32 bits"):
        world.engine.check(request)
    assert answered(world, [5] * 40).tokens


@pytest.mark.parametrize("name", [StrategyName.WINDOW, StrategyName.MIXED])
def test_a_cut_network_says_the_same_whoever_judges(tiny_model: ModelManifest, name: StrategyName) -> None:
    settings = EngineSettings(
        arena_bytes=16 * MIB, kv_precision="layered-u8", kv_16bit_layers=1, strategy=StrategySettings(name)
    )
    with pytest.raises(UnsupportedModel, match="16 or 32 bits"):
        Bench(tiny_model, settings)


def test_a_scorer_of_another_model_is_told_at_the_start(tiny_model: ModelManifest, tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", w=np.zeros((30, 384)), b=np.zeros(30))
    with pytest.raises(ModelError, match="30 layers of 384 features, this model has 2 of 128"):
        bench(tiny_model, StrategyName.DYNAMIC, scorer=str(tmp_path / "other.npz"))


@pytest.mark.model
def test_keys_of_the_first_layer_are_those_of_their_new_positions(
    default_model: ModelManifest,
) -> None:
    """On the default model, whose first layer's keys also follow from token and position alone."""
    cut = bench(default_model, StrategyName.WINDOW, 32, window=128)
    plain = bench(default_model, StrategyName.DYNAMIC, 32)
    prompt = random_prompt(Random(11), 40_000, 300)
    held = in_window(prompt)
    request = GenerationRequest(RequestId("r"), prompt, Sampling(max_tokens=2, temperature=0))
    other = GenerationRequest(RequestId("s"), held, Sampling(max_tokens=2, temperature=0))
    found, expected = first_keys(cut, request), first_keys(plain, other)
    assert found.shape == expected.shape
    # Each rounding to bf16 is off by up to 2^-9 of a number; pairs are turned, so of the larger of both.
    largest = np.abs(expected).max(axis=(0, 2), keepdims=True)
    assert (np.abs(found - expected) <= 2.0**-6 * largest).all()


def first_keys(world: Bench, request: GenerationRequest) -> NDArray[np.float32]:
    """The keys of the first layer behind a prompt."""
    state = world.stepper.prepare(request, lambda delta: None)
    world.stepper.enqueue(state)
    holding = None
    while holding is None or state.sequences[0].generated == 0:
        world.stepper.step()
        holding = state.sequences[0].holding
    compactor = world.stepper._parts.scheduler._compactor
    assert compactor is not None
    keys, _ = compactor._mover.read(holding.table, np.arange(holding.cached))
    return keys[0]
