"""Metrics on distributions whose values can be worked out by hand."""

from __future__ import annotations

from math import log

import numpy as np
import pytest

from hotprefix.quality.metrics import compare, joined, log_softmax


def logits_of(*rows: tuple[float, ...]) -> np.ndarray:
    """Logits whose softmax has these probabilities, shifted by something that must not matter."""
    with np.errstate(divide="ignore"):
        return (np.log(np.array(rows)) + 7).astype(np.float32)


def test_log_softmax_is_the_logarithm_of_shares() -> None:
    np.testing.assert_allclose(
        np.exp(log_softmax(logits_of((0.5, 0.25, 0.25)))), [[0.5, 0.25, 0.25]], rtol=1e-6
    )
    assert np.isfinite(log_softmax(np.array([[3e38, -3e38]], np.float32))[0, 0])


def test_divergence_agreement_and_loss_by_hand() -> None:
    reference = logits_of((0.5, 0.25, 0.25), (0.8, 0.1, 0.1))
    other = logits_of((0.25, 0.5, 0.25), (0.8, 0.1, 0.1))
    shift = compare(reference, other, np.array([1, 0]))
    # 0.5 log(0.5 / 0.25) + 0.25 log(0.25 / 0.5) = 0.25 log 2
    np.testing.assert_allclose(shift.divergence, [0.25 * log(2), 0.0], atol=1e-6)
    assert shift.agrees.tolist() == [False, True]
    np.testing.assert_allclose(shift.loss, [-log(0.5), -log(0.8)], rtol=1e-6)
    np.testing.assert_allclose(shift.reference_loss, [-log(0.25), -log(0.8)], rtol=1e-6)
    assert shift.tokens == 2


def test_divergence_is_not_symmetric_and_goes_from_the_reference() -> None:
    first, second = logits_of((0.9, 0.1)), logits_of((0.5, 0.5))
    there = compare(first, second, np.array([0])).divergence[0]
    back = compare(second, first, np.array([0])).divergence[0]
    assert there == pytest.approx(0.9 * log(1.8) + 0.1 * log(0.2), abs=1e-6)
    assert back == pytest.approx(0.5 * log(0.5 / 0.9) + 0.5 * log(5), abs=1e-6)


def test_a_token_that_can_not_come_counts_nothing() -> None:
    shift = compare(logits_of((0.5, 0.5, 0.0)), logits_of((0.5, 0.25, 0.25)), np.array([0]))
    assert shift.divergence[0] == pytest.approx(0.5 * log(2), abs=1e-6)


def test_many_rows_are_compared_as_single_ones() -> None:
    random = np.random.default_rng(1)
    reference, other = random.normal(0, 3, (2, 77, 50)).astype(np.float32)
    followers = random.integers(0, 50, 77)
    whole = compare(reference, other, followers)
    single = joined(
        [compare(reference[i : i + 1], other[i : i + 1], followers[i : i + 1]) for i in range(77)]
    )
    np.testing.assert_array_equal(whole.divergence, single.divergence)
    np.testing.assert_array_equal(whole.loss, single.loss)
    assert (whole.divergence > 0).all()


def test_rows_that_do_not_belong_together_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        compare(logits_of((0.5, 0.5)), logits_of((0.5, 0.5)), np.array([0, 1]))
