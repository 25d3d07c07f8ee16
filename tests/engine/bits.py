"""An engine over a real model, stepped by hand, that shows the logits behind every prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.clock import SystemClock
from hotprefix.base.ids import RequestId
from hotprefix.engine.front import ServedModel
from hotprefix.engine.loader import load_engine
from hotprefix.engine.observer import NullObserver
from hotprefix.engine.request import Delta, GenerationRequest, Sampling
from hotprefix.engine.row_state import RowState
from hotprefix.engine.sampler import Drawn, Sampler
from hotprefix.engine.settings import EngineSettings
from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.answers import AnswerMemory
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.segments import SegmentedTokenizer
from hotprefix.prompt.template import JinjaTemplate


class RecordingSampler(Sampler):
    """Keeps the first logits that each row was drawn from."""

    def __init__(self) -> None:
        self.first: dict[RowState, NDArray[np.float32]] = {}

    def sample(self, logits: NDArray[np.float32], rows: Sequence[RowState]) -> list[Drawn]:
        for values, row in zip(logits, rows, strict=True):
            self.first.setdefault(row, values.copy())
        return super().sample(logits, rows)


@dataclass
class Answer:
    """What one request gave."""

    row: RowState
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    cached: int = -1

    def put(self, delta: Delta) -> None:
        self.tokens += delta.token_ids
        self.text += delta.text
        if delta.usage is not None:
            self.cached = delta.usage.cached_tokens


class Bench:
    """Runs requests to their end in one thread."""

    def __init__(self, manifest: ModelManifest, settings: EngineSettings) -> None:
        tokenizer = SegmentedTokenizer(HfTokenizer(manifest.tokenizer), 1 << 20)
        self.answers = AnswerMemory(tokenizer, 1 << 20)
        self.tokenizer = tokenizer
        self.template = JinjaTemplate(manifest.chat_template)
        model = ServedModel(
            manifest.name, (), manifest.context_length, 0, tokenizer, self.template, manifest.fingerprint
        )
        self.sampler = RecordingSampler()
        engine = load_engine(
            manifest, model, self.answers, settings, NullObserver(), SystemClock(), self.sampler
        )
        self.engine = engine
        self.stepper = engine.stepper
        self._count = 0

    def run(
        self, prompts: Sequence[Sequence[int]], max_tokens: int, *, ignore_eos: bool = True
    ) -> list[Answer]:
        """Greedy answers to prompts that all arrive at once."""
        sampling = Sampling(max_tokens=max_tokens, temperature=0, ignore_eos=ignore_eos)
        answers = []
        for prompt in prompts:
            self._count += 1
            request = GenerationRequest(RequestId(f"r{self._count}"), list(prompt), sampling)
            answer = Answer(None)  # type: ignore[arg-type]
            state = self.stepper.prepare(request, answer.put)
            answer.row = state.sequences[0].row
            answers.append(answer)
            self.stepper.enqueue(state)
        while not self.stepper.idle:
            self.stepper.step()
        return answers

    def logits(self, answer: Answer) -> NDArray[np.float32]:
        """The logits behind the prompt of an answer."""
        return self.sampler.first[answer.row]


def random_prompt(random: Random, vocab: int, length: int) -> list[int]:
    return [random.randrange(vocab) for _ in range(length)]
