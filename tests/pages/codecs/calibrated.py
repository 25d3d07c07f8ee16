"""Calibrations of no model in particular."""

from __future__ import annotations

import numpy as np

from hotprefix.pages.codecs.calibration import Calibration


def calibration_for(layers: int = 4, heads: int = 2, size: int = 16, seed: int = 1) -> Calibration:
    """For values of spread 1 around means near 0; steps differ by channel, and scores by token."""
    random = np.random.default_rng(seed)
    shape = (2, layers, heads, size)
    return Calibration(
        fingerprint="f" * 64,
        source="nowhere==1",
        means=random.normal(0, 0.1, shape).astype(np.float32),
        steps=random.uniform(0.1, 0.5, shape).astype(np.float32),
        spreads=np.ones(shape, np.float32),
        router=random.normal(0, 0.2, (layers, heads, 2 * size + 2)).astype(np.float32),
        bias=np.zeros((layers, heads), np.float32),
        shares=np.array([0.05, 0.1, 0.2, 0.4, 0.15, 0.1], np.float32),
        w=random.normal(0, 1, (layers, 2 * heads * size)).astype(np.float32),
        b=np.zeros(layers, np.float32),
    )
