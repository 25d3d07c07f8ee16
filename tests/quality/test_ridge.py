"""Regression over rows that come bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from hotprefix.quality.ridge import Ridge


def test_a_linear_law_is_found_whatever_the_features_size() -> None:
    random = np.random.default_rng(1)
    ridge = Ridge(3)
    law = np.array([2.0, -0.5, 0.03])
    for _ in range(4):
        rows = random.normal((0, 5, 100), (1, 2, 30), (200, 3)).astype(np.float32)
        ridge.add(rows, (rows @ law + 7).astype(np.float32))
    weights, bias = ridge.fit(1e-6)
    np.testing.assert_allclose(weights, law, rtol=1e-3)
    assert bias == pytest.approx(7, abs=0.02)


def test_a_penalty_shrinks_weights_and_keeps_the_mean() -> None:
    random = np.random.default_rng(2)
    rows = random.normal(3, 1, (500, 2)).astype(np.float32)
    targets = (rows[:, 0] * 2).astype(np.float32)
    ridge = Ridge(2)
    ridge.add(rows, targets)
    weights, bias = ridge.fit(1.0)
    assert weights[0] == pytest.approx(1.0, abs=0.1)
    assert float((rows @ weights + bias).mean()) == pytest.approx(float(targets.mean()), rel=1e-4)
    assert ridge.mean == pytest.approx(float(targets.mean()), rel=1e-6)


def test_a_feature_that_never_changes_is_harmless() -> None:
    ridge = Ridge(2)
    random = np.random.default_rng(3)
    rows = np.ones((50, 2), np.float32)
    rows[:, 0] = random.normal(0, 1, 50)
    ridge.add(rows, rows[:, 0] * 3)
    weights, _ = ridge.fit(1e-6)
    assert np.isfinite(weights).all()
    assert weights[0] == pytest.approx(3, rel=1e-3)
