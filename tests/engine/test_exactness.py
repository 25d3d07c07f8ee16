"""Cached equals uncached: the same bits behind the prompt and the same answer, on real models.

Each case computes a prompt in a fresh engine without reuse, and again where a prefix of it is
cached, prefill is chunked in another way and strangers share the batch.
"""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from hotprefix.engine.settings import DecodeMode, EngineSettings
from hotprefix.models.manifest import ModelManifest
from tests.engine.bits import Bench, random_prompt

MIB = 1024 * 1024


def compare(manifest: ModelManifest, *, precision: str, cases: int, longest: int, answer: int) -> int:
    """Run `cases` random cases; returns how many prompt tokens came from the cache."""
    random = Random(cases)
    plain = Bench(manifest, EngineSettings(arena_bytes=256 * MIB, kv_precision=precision, policy=None))
    cached = [
        Bench(
            manifest,
            EngineSettings(
                arena_bytes=256 * MIB, kv_precision=precision, prefill_chunk=chunk, mixed_chunk=chunk // 2
            ),
        )
        for chunk in (48, 160, 512)
    ]
    reused = 0
    vocab = plain.stepper.vocab_size
    for case in range(cases):
        prefix = random_prompt(random, vocab, random.randrange(1, longest))
        prompt = prefix + random_prompt(random, vocab, random.choice((1, 2, 3, 17, 30, 64)))
        company = [
            random_prompt(random, vocab, random.randrange(1, longest)) for _ in range(random.randrange(4))
        ]
        [expected] = plain.run([prompt], answer)
        bench = cached[case % len(cached)]
        bench.run([prefix + random_prompt(random, vocab, 5)], 2)
        found, *_ = bench.run([prompt, *company], answer)
        np.testing.assert_array_equal(bench.logits(found), plain.logits(expected))
        assert found.tokens == expected.tokens
        reused += found.cached
        # Now the whole prompt is known: an exact repeat.
        [again] = bench.run([prompt], answer)
        np.testing.assert_array_equal(bench.logits(again), plain.logits(expected))
        assert again.tokens == expected.tokens
        assert again.cached == len(prompt) if precision == "auto" else again.cached > 0 or len(prompt) < 34
    return reused


@pytest.mark.parametrize("precision", ["auto", "u8", "u4"])
def test_tiny_model(tiny_model: ModelManifest, precision: str) -> None:
    assert compare(tiny_model, precision=precision, cases=30, longest=300, answer=40) > 1000


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("precision", ["auto", "u8"])
def test_default_model(default_model: ModelManifest, precision: str) -> None:
    assert compare(default_model, precision=precision, cases=6, longest=700, answer=32) > 1000


@pytest.mark.model
def test_exact_decoding_writes_what_prefill_would(default_model: ModelManifest) -> None:
    """The next turn reuses the answer's blocks and still equals a run that computes everything."""
    settings = EngineSettings(arena_bytes=256 * MIB, decode=DecodeMode.EXACT)
    bench = Bench(default_model, settings)
    plain = Bench(default_model, EngineSettings(arena_bytes=256 * MIB, policy=None, decode=DecodeMode.EXACT))
    prompt = random_prompt(Random(1), 40_000, 101)
    [first] = bench.run([prompt], 50)
    turn = prompt + first.tokens + random_prompt(Random(2), 40_000, 20)
    [found] = bench.run([turn], 8)
    [expected] = plain.run([turn], 8)
    assert found.cached >= len(prompt) + 49
    np.testing.assert_array_equal(bench.logits(found), plain.logits(expected))
    assert found.tokens == expected.tokens


@pytest.mark.model
def test_a_conversation_reuses_prompt_and_answer(default_model: ModelManifest) -> None:
    """100 tokens of prompt and 50 generated, then 50 new ones: all but the last token is reused."""
    bench = Bench(default_model, EngineSettings(arena_bytes=256 * MIB))
    prompt = random_prompt(Random(3), 40_000, 100)
    [first] = bench.run([prompt], 50)
    [second] = bench.run([prompt + first.tokens + random_prompt(Random(4), 40_000, 50)], 1)
    # The last token drawn was never computed: nothing followed it.
    assert second.cached == 149
