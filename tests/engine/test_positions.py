"""Every token is computed at its place in the whole text, whatever was reused, copied, forked or preempted.

`Auditor` stands between scheduler and runner. It keeps for each slot of each block which token was
written there and at which position, so that the text behind a row can be read back from its block
table alone, and compared with the texts that were asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from hotprefix.base.ids import BlockId, RequestId
from hotprefix.engine.request import Delta, GenerationRequest, Sampling
from hotprefix.engine.row_state import RowState
from hotprefix.engine.runner import PagedRunner, Row
from hotprefix.engine.settings import MIB, DecodeMode, EngineSettings
from hotprefix.models.manifest import ModelManifest
from tests.engine.bits import Bench, random_prompt
from tests.engine.worlds import Recorder


class Auditor:
    """A runner that checks every row before the real one computes it."""

    def __init__(self, runner: PagedRunner, texts: list[list[int]]) -> None:
        self._runner = runner
        self._size = runner.format.block_size
        self._written: dict[tuple[BlockId, int], tuple[int, int]] = {}
        self._positions: NDArray[np.int64] = np.empty(0, np.int64)
        self.texts = texts
        self.copies = 0
        self.rows = 0
        self._watch(runner)

    def run(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        expected = []
        for row in rows:
            tokens, positions = self._behind(row)
            assert positions == list(range(row.past)), "what lies before this row was written elsewhere"
            whole = tokens + list(row.tokens)
            assert any(text[: len(whole)] == whole for text in self.texts), "nobody asked for this text"
            # A full recompute of the text gives its last tokens these positions.
            expected += list(range(len(whole)))[-len(row.tokens) :]
        logits = self._runner.run(rows)
        assert self._positions[: len(expected)].tolist() == expected
        for row in rows:
            for place, token in enumerate(row.tokens, row.past):
                self._written[row.table[place // self._size], place % self._size] = (token, place)
        self.rows += len(rows)
        return logits

    def _behind(self, row: Row) -> tuple[list[int], list[int]]:
        slots = [(row.table[place // self._size], place % self._size) for place in range(row.past)]
        found = [self._written[slot] for slot in slots]
        return [token for token, _ in found], [place for _, place in found]

    def _watch(self, runner: PagedRunner) -> None:
        arena, set_input = runner._arena, runner._set
        copy = arena.copy

        def copied(source: BlockId, target: BlockId) -> None:
            copy(source, target)
            self.copies += 1
            for slot in range(self._size):
                self._written.pop((target, slot), None)
                if (source, slot) in self._written:
                    self._written[target, slot] = self._written[source, slot]

        def noted(name: str, values: NDArray[np.int64]) -> None:
            if name == "position_ids":
                self._positions = values.copy()
            set_input(name, values)

        arena.copy = copied  # type: ignore[method-assign]
        runner._set = noted  # type: ignore[method-assign]


@dataclass
class Asked:
    """One request: what came, and the logits behind its prompt."""

    prompt: list[int]
    rows: list[RowState]
    tokens: dict[int, list[int]] = field(default_factory=dict)
    cached: int = 0

    def put(self, delta: Delta) -> None:
        self.tokens.setdefault(delta.index, []).extend(delta.token_ids)
        if delta.usage is not None:
            self.cached = delta.usage.cached_tokens


def ask(bench: Bench, name: str, prompt: list[int], sampling: Sampling, n: int) -> Asked:
    asked = Asked(prompt, [])
    state = bench.stepper.prepare(GenerationRequest(RequestId(name), prompt, sampling, n), asked.put)
    asked.rows = [sequence.row for sequence in state.sequences]
    bench.stepper.enqueue(state)
    return asked


def finish(bench: Bench) -> None:
    while not bench.stepper.idle:
        bench.stepper.step()


def converse(
    manifest: ModelManifest, *, blocks: int, turns: int, longest: int, answer: int
) -> dict[str, int]:
    """Conversations of several turns, three at once, the last of them with two answers each.

    What the small cached engine computes is compared with an engine that computes everything.
    """
    random = Random(turns)
    exact = {"decode": DecodeMode.EXACT, "kv_precision": "auto"}
    plain = Bench(manifest, EngineSettings(arena_bytes=64 * MIB, policy=None, **exact))  # type: ignore[arg-type]
    room = blocks * plain.stepper._parts.block_bytes
    settings = EngineSettings(arena_bytes=room, prefill_chunk=96, mixed_chunk=48, **exact)  # type: ignore[arg-type]
    bench, recorder = Bench(manifest, settings), Recorder()
    bench.stepper._observer = recorder
    runner = bench.stepper._parts.runner
    assert isinstance(runner, PagedRunner)
    auditor = Auditor(runner, [])
    object.__setattr__(bench.stepper._parts, "runner", auditor)
    vocab, reused, partial = plain.stepper.vocab_size, 0, 0
    said: list[list[int]] = [random_prompt(random, vocab, 45)] * 3
    for turn in range(turns):
        prompts = [text + random_prompt(random, vocab, random.randrange(2, longest)) for text in said]
        wishes = [(Sampling(max_tokens=answer, temperature=0, ignore_eos=True), 1)] * 2
        wishes.append((Sampling(max_tokens=answer, temperature=1.0, seed=turn, ignore_eos=True), 2))
        expected = []
        for prompt, (sampling, n) in zip(prompts, wishes, strict=True):
            expected.append(ask(plain, f"t{turn}-{len(expected)}", prompt, sampling, n))
            finish(plain)
        auditor.texts += [asked.prompt + answer for asked in expected for answer in asked.tokens.values()]
        found = [
            ask(bench, f"t{turn}-{place}", prompt, sampling, n)
            for place, (prompt, (sampling, n)) in enumerate(zip(prompts, wishes, strict=True))
        ]
        finish(bench)
        for ours, theirs in zip(found, expected, strict=True):
            assert ours.tokens == theirs.tokens
            for our_row, their_row in zip(ours.rows, theirs.rows, strict=True):
                np.testing.assert_array_equal(bench.sampler.first[our_row], plain.sampler.first[their_row])
            reused += ours.cached
            partial += ours.cached % 32 != 0
        said = [asked.prompt + asked.tokens[max(asked.tokens)] for asked in found]
    return {
        "reused": reused,
        "partial": partial,
        "preempted": recorder.preemptions,
        "copies": auditor.copies,
        "rows": auditor.rows,
    }


def check(counts: dict[str, int]) -> None:
    """All that could go wrong has happened."""
    assert all(count > 0 for count in counts.values()), counts


def test_positions_and_bits_of_a_tiny_model(tiny_model: ModelManifest) -> None:
    check(converse(tiny_model, blocks=20, turns=4, longest=60, answer=70))


@pytest.mark.model
@pytest.mark.slow
def test_positions_and_bits_of_the_default_model(default_model: ModelManifest) -> None:
    check(converse(default_model, blocks=10, turns=2, longest=20, answer=36))


@pytest.mark.parametrize("shift", [-1, 1, 32])
def test_the_auditor_notices_a_shifted_row(tiny_model: ModelManifest, shift: int) -> None:
    """The audit can fail: a row that is said to begin elsewhere is noticed."""
    bench = Bench(tiny_model, EngineSettings(arena_bytes=4 * MIB))
    runner = bench.stepper._parts.runner
    assert isinstance(runner, PagedRunner)
    text = list(range(5, 105))
    auditor = Auditor(runner, [text])
    table = [BlockId(block) for block in range(8)]
    auditor.run([Row(text[:64], 0, table, False)])
    with pytest.raises((AssertionError, KeyError)):
        auditor.run([Row(text[64:], 64 + shift, table, True)])


def test_the_auditor_notices_another_block(tiny_model: ModelManifest) -> None:
    bench = Bench(tiny_model, EngineSettings(arena_bytes=4 * MIB))
    runner = bench.stepper._parts.runner
    assert isinstance(runner, PagedRunner)
    text = list(range(5, 105))
    auditor = Auditor(runner, [text])
    table = [BlockId(block) for block in range(8)]
    auditor.run([Row(text[:64], 0, table, False)])
    table[0], table[1] = table[1], table[0]
    with pytest.raises(AssertionError, match="was written elsewhere"):
        auditor.run([Row(text[64:], 64, table, True)])
