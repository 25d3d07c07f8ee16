"""Scores of tokens."""

from __future__ import annotations

import numpy as np
import pytest

from hotprefix.pages.codecs.token_scores import EqualScorer, LinearTokenScorer, ShortScorer, features
from tests.pages.codecs.calibrated import calibration_for

VALUES = np.random.default_rng(1).normal(0, 1, (2, 4, 2, 8, 16)).astype(np.float32)


def test_the_linear_scorer_is_its_weights_times_the_features() -> None:
    calibration = calibration_for()
    scores = LinearTokenScorer(calibration).score(VALUES)
    rows = features(VALUES[0, 2, 1], VALUES[1, 2, 1])
    expected = rows @ calibration.router[2, 1] + calibration.bias[2, 1]
    np.testing.assert_allclose(scores[2, 1], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("side", [0, 1])
def test_half_as_long_is_one_bit_more(side: int) -> None:
    values = np.ones_like(VALUES)
    values[side, 1, 0, 3] = 0.5
    scores = ShortScorer(side).score(values)
    assert scores[1, 0, 3] - scores[1, 0, 2] == pytest.approx(1)
    assert abs(scores[0, 0, 0]) < 1e-6
    assert not ShortScorer(1 - side).score(values).any()


def test_equal_is_the_middle_for_all() -> None:
    scores = EqualScorer().score(VALUES)
    assert scores.shape == (4, 2, 8)
    assert not scores.any()


def test_tokens_of_nothing_have_scores() -> None:
    assert np.isfinite(ShortScorer(1).score(np.zeros_like(VALUES))).all()
