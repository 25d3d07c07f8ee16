"""`hotprefix calibrate`: a calibration from a model and texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

import numpy as np

from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.codecs.experts import MIDDLE_BITS, OFFSETS, nearest
from hotprefix.pages.codecs.mixed_preset import mixed_codec
from hotprefix.pages.codecs.token_scores import LinearTokenScorer
from hotprefix.quality.attention import Floats
from hotprefix.quality.budgets import LayerBudgets, budgeted
from hotprefix.quality.learning import Learner
from hotprefix.quality.model import MeasuredModel, Setup, words_of
from hotprefix.quality.observing import Observer
from hotprefix.quality.passage import through, to_words
from hotprefix.quality.sizes import CalibrationSizes
from hotprefix.quality.texts import Document, Library, Part

_LEAST_SHARE = 0.002
_ROUNDS = 2


class Progress(Protocol):
    """Told before a stage of so many steps, and after each step."""

    def begin(self, stage: str, steps: int) -> None: ...

    def step(self) -> None: ...


class Calibrated(NamedTuple):
    """What was learned, and the mean divergence [2, layers] by which layers' budgets were set."""

    calibration: Calibration
    divergence: Floats


def calibrate(
    manifest: ModelManifest, library: Library, sizes: CalibrationSizes, setup: Setup, progress: Progress
) -> Calibrated:
    """Learn everything that `mixed` uses. Raises `ModelError`, and `InvalidRequest` for too short texts."""
    documents = library.documents(Part.LEARNED, sizes.documents, sizes.tokens)
    progress.begin("Loading", 1)
    model = MeasuredModel(manifest, setup, sizes.tokens, queries=True)
    progress.step()
    observer = Observer(model)
    learned_from = sizes.tokens * 3 // 4
    draft = _learned(manifest, observer, documents, learned_from, progress)
    judged = documents[: sizes.judged]
    budgets = LayerBudgets(model, draft)
    passages = []
    for document in judged:
        model.prefill(document.tokens)
        values = _values(observer, model, learned_from)
        passages.append(budgets.read(values, document.tokens[learned_from:]))
    progress.begin("Measuring layers", len(passages) * observer.size.layers)
    divergence = budgets.measure(passages, progress.step)
    draft = replace(draft, steps=budgeted(draft.steps, divergence))
    return Calibrated(_scaled(draft, observer, model, documents[: 2 * sizes.judged], progress), divergence)


def _learned(
    manifest: ModelManifest,
    observer: Observer,
    documents: Sequence[Document],
    learned_from: int,
    progress: Progress,
) -> Calibration:
    learner = Learner(observer.size)
    progress.begin("Observing attention", len(documents) * observer.size.layers)
    for document in documents:
        observer.run(document.tokens)
        for layer in range(observer.size.layers):
            learner.add(layer, observer.layer(layer), learned_from)
            progress.step()
    router, bias = learner.router()
    w, b = learner.scorer()
    return Calibration(
        manifest.fingerprint,
        manifest.source,
        learner.means(),
        learner.steps(observer.rotary),
        learner.spreads(),
        router,
        bias,
        np.full(len(OFFSETS), 1 / len(OFFSETS), np.float32),
        w,
        b,
    )


def _scaled(
    draft: Calibration,
    observer: Observer,
    model: MeasuredModel,
    documents: Sequence[Document],
    progress: Progress,
) -> Calibration:
    """Shares as they are in texts, and steps with which a value takes `MIDDLE_BITS` on average."""
    words = words_of(model.format, model.facts.word_type)
    progress.begin("Counting bits", len(documents) * (_ROUNDS + 1))
    wanted = np.zeros(len(OFFSETS))
    passages = []
    for document in documents:
        count = len(document.tokens)
        model.prefill(document.tokens)
        scores = LinearTokenScorer(draft).score(_values(observer, model, count))
        wanted += np.bincount(nearest(scores.reshape(-1), OFFSETS), minlength=len(OFFSETS))
        buffers = model.blocks(-(-count // model.format.block_size))
        passages.append((to_words(buffers, model.format, words), count))
        progress.step()
    shares = np.maximum(wanted / wanted.sum(), _LEAST_SHARE).astype(np.float32)
    draft = replace(draft, shares=shares / shares.sum())
    for _ in range(_ROUNDS):
        codec = mixed_codec(words, model.facts.rotary, calibration=draft)
        bits, values = 0, 0
        for blocks, count in passages:
            bits += 8 * through(codec, blocks, words.block_size, count).size
            values += count * words.block_bytes // words.block_size // 2
            progress.step()
        draft = replace(draft, steps=draft.steps * np.float32(2.0 ** (bits / values - MIDDLE_BITS)))
    return draft


def _values(observer: Observer, model: MeasuredModel, tokens: int) -> Floats:
    """Un-rotated keys and values of the first tokens, [2, layers, kv heads, tokens, head size]."""
    layers = range(observer.size.layers)
    keys = np.stack([model.cached("key", layer, tokens) for layer in layers])
    values = np.stack([model.cached("value", layer, tokens) for layer in layers])
    return np.stack((observer.unrotated(keys), values))
