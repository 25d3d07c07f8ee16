"""Judges of tokens."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hotprefix.base.errors import ModelError
from hotprefix.engine.strategy.scorer import KeyDiffScorer, NormScorer, make_scorer, read_scorer
from hotprefix.engine.strategy.tally import Tally
from hotprefix.pages.rotary import Rotary

ROTARY = Rotary(10_000.0 ** (-np.arange(4) / 4))
LAYERS, HEADS, TOKENS, SIZE = 3, 2, 10, 8


def kv(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    keys, values = random.standard_normal((2, LAYERS, HEADS, TOKENS, SIZE)).astype(np.float32)
    return keys, values


def test_keydiff_prefers_what_points_elsewhere() -> None:
    keys, values = kv()
    keys[:] = 1
    keys[:, :, 7] = -1
    score = KeyDiffScorer().score(keys, values, np.arange(TOKENS))
    assert score.shape == (LAYERS, TOKENS)
    assert (score.argmax(axis=1) == 7).all()
    np.testing.assert_allclose(score[:, 7], 1, atol=1e-5)
    np.testing.assert_allclose(np.delete(score, 7, axis=1), -1, atol=1e-5)


def test_norm_prefers_short_keys() -> None:
    keys, values = kv()
    keys[:, :, 3] *= 0.01
    score = NormScorer().score(keys, values, np.arange(TOKENS))
    assert (score.argmax(axis=1) == 3).all()


def test_a_calibrated_scorer_sees_keys_before_the_embedding(tmp_path: Path) -> None:
    plain, values = kv()
    random = np.random.default_rng(1)
    weights = random.standard_normal((LAYERS, 2 * HEADS * SIZE))
    biases = random.standard_normal(LAYERS)
    np.savez(tmp_path / "scorer.npz", w=weights, b=biases)
    positions = np.arange(100, 100 + TOKENS)
    scorer = make_scorer(str(tmp_path / "scorer.npz"), ROTARY)
    score = scorer.score(ROTARY.rotated(plain, positions), values, positions)
    for layer in range(LAYERS):
        for token in range(TOKENS):
            features = np.concatenate((plain[layer, :, token].ravel(), values[layer, :, token].ravel()))
            assert score[layer, token] == pytest.approx(features @ weights[layer] + biases[layer], abs=1e-3)


@pytest.mark.parametrize("how", ["missing", "text", "shape", "nan"])
def test_a_broken_file_is_told(tmp_path: Path, how: str) -> None:
    path = tmp_path / "scorer.npz"
    if how == "text":
        path.write_text("no arrays")
    elif how != "missing":
        weights = np.zeros((3, 4)) if how == "shape" else np.full((3, 4), np.nan)
        np.savez(path, w=weights, b=np.zeros(2 if how == "shape" else 3))
    with pytest.raises(ModelError, match="calibrate") as told:
        read_scorer(path, ROTARY)
    assert "pickle" not in str(told.value)


def test_a_file_of_another_model_is_told(tmp_path: Path) -> None:
    np.savez(tmp_path / "scorer.npz", w=np.zeros((2, 5)), b=np.zeros(2))
    keys, values = kv()
    with pytest.raises(ModelError, match="2 layers of 5 features, this model has 3 of 32"):
        read_scorer(tmp_path / "scorer.npz", ROTARY).score(keys, values, np.arange(TOKENS))


class TestTally:
    def test_a_share_is_that_of_the_queries_that_could_see_the_token(self) -> None:
        tally = Tally()
        # Two queries see the first token, one the second.
        tally.note(np.array([[1.5, 0.5]], dtype=np.float32), 2)
        np.testing.assert_allclose(np.exp(tally.importance(np.arange(2))), [[0.75, 0.5]], rtol=1e-6)
        tally.note(np.array([[0.3, 0.3, 0.4]], dtype=np.float32), 1)
        np.testing.assert_allclose(
            np.exp(tally.importance(np.arange(3))), [[1.8 / 3, 0.8 / 2, 0.4]], rtol=1e-6
        )

    def test_queries_further_back_than_the_look_do_not_count(self) -> None:
        tally = Tally()
        tally.note(np.ones((2, 10), dtype=np.float32), 4)
        shares = np.exp(tally.importance(np.arange(10)))
        np.testing.assert_allclose(shares[0, :7], 0.25, rtol=1e-6)
        np.testing.assert_allclose(shares[1, 7:], [1 / 3, 1 / 2, 1], rtol=1e-6)

    def test_what_left_the_cache_leaves_the_tally(self) -> None:
        tally = Tally()
        tally.note(np.array([[0.1, 0.2, 0.3]], dtype=np.float32), 1)
        tally.keep(np.array([0, 2]))
        assert len(tally) == 2
        np.testing.assert_allclose(np.exp(tally.importance(np.arange(2))), [[0.1, 0.3]], rtol=1e-6)

    def test_no_attention_is_very_little(self) -> None:
        tally = Tally()
        tally.note(np.array([[0.0, 1.0]], dtype=np.float32), 1)
        assert np.isfinite(tally.importance(np.arange(2))).all()
