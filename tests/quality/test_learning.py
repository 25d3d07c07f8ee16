"""Budgets and routers from numbers whose law is known."""

from __future__ import annotations

import numpy as np
import pytest

from hotprefix.pages.codecs.token_scores import features
from hotprefix.pages.rotary import Rotary
from hotprefix.quality.attention import Looks
from hotprefix.quality.budgets import COARSE, budgeted
from hotprefix.quality.learning import Learner
from hotprefix.quality.observing import Seen, Size


def test_a_layer_that_is_felt_four_times_as_much_gets_half_the_step() -> None:
    steps = np.ones((2, 3, 1, 4), np.float32)
    divergence = np.full((2, 3), 1e-4, np.float32)
    divergence[0, 1] = 4e-4
    found = budgeted(steps, divergence)
    assert found[0, 1, 0, 0] / found[0, 0, 0, 0] == pytest.approx(0.5)
    assert found[0, 2, 0, 0] / found[1, 2, 0, 0] == pytest.approx(COARSE[0] / COARSE[1])
    # Equal parts of the divergence, which grows with the square of the step.
    parts = divergence * np.square(found[:, :, 0, 0] / np.array(COARSE)[:, None])
    assert parts.max() / parts.min() == pytest.approx(1, rel=1e-4)


def test_one_text_moves_no_layer_too_far() -> None:
    divergence = np.full((2, 5), 1e-4, np.float32)
    divergence[0, 0], divergence[1, 4] = 1e3, 1e-12
    found = budgeted(np.ones((2, 5, 1, 4), np.float32), divergence)[:, :, 0, 0]
    assert found[0, 0] / found[0, 1] == pytest.approx(1 / 8)
    assert found[1, 4] / found[1, 1] == pytest.approx(8)


def test_a_layer_that_is_not_felt_at_all_has_steps() -> None:
    divergence = np.full((2, 5), 1e-4, np.float32)
    divergence[1, 2] = 0
    found = budgeted(np.ones((2, 5, 1, 4), np.float32), divergence)
    assert np.isfinite(found).all()
    assert found[1, 2, 0, 0] / found[1, 1, 0, 0] == pytest.approx(8)


def seen_of(seed: int, law: np.ndarray) -> Seen:
    random = np.random.default_rng(seed)
    keys = random.normal(2, 1, (1, 400, 4)).astype(np.float32)
    values = random.normal(0, 0.5, (1, 400, 4)).astype(np.float32)
    effect = features(keys[0], values[0]) @ law - 9
    energy = np.array([[1.0, 9.0, 3.0, 7.0]], np.float32)
    return Seen(keys, values, energy, [Looks(effect.astype(np.float32), np.full(400, 0.01, np.float32))])


def test_the_router_follows_effects_with_the_middle_at_zero() -> None:
    law = np.zeros(10, np.float32)
    law[[1, 6]] = 2.0, -1.0
    learner = Learner(Size(1, 1, 4))
    for seed in range(4):
        learner.add(0, seen_of(seed, law), learned_from=300)
    weights, bias = learner.router()
    new = seen_of(9, law)
    rows = features(new.keys[0], new.values[0])
    scores = rows @ weights[0, 0] + bias[0, 0]
    effect = new.looks[0].effect
    assert np.corrcoef(scores, effect)[0, 1] > 0.99
    assert abs(float(scores.mean())) < 0.15
    assert scores.std() / effect.std() == pytest.approx(0.35, rel=0.1)
    assert learner.means()[0, 0, 0] == pytest.approx(2, abs=0.1)
    assert learner.spreads()[1, 0, 0] == pytest.approx(0.5, rel=0.1)


def test_channels_that_are_asked_for_more_get_finer_steps_and_pairs_share() -> None:
    learner = Learner(Size(1, 1, 4))
    learner.add(0, seen_of(1, np.zeros(10, np.float32)), learned_from=300)
    apart = learner.steps(None)[0, 0, 0]
    np.testing.assert_allclose(apart, 1 / np.sqrt([1, 9, 3, 7]), rtol=1e-5)
    half = learner.steps(Rotary(np.ones(2)))[0, 0, 0]
    np.testing.assert_allclose(half, 1 / np.sqrt([2, 8, 2, 8]), rtol=1e-5)
    interleaved = learner.steps(Rotary(np.ones(2), is_half_split=False))[0, 0, 0]
    np.testing.assert_allclose(interleaved, 1 / np.sqrt([5, 5, 5, 5]), rtol=1e-5)
    assert len(set(learner.steps(None)[1, 0, 0].tolist())) == 1
