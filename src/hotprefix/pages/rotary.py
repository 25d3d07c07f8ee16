"""Rotary position embedding as the model computes it: frequencies, layout, and moving cached keys.

R(p2 − p1) R(p1) = R(p2), so a cached key moves by rotating it with the difference of positions. That is
exact for fixed frequencies (plain, linear, Llama-3 and YaRN scaling), and wrong for dynamic NTK, whose
frequencies depend on the length.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Rotary:
    """`inverse_frequencies` float64 [rotated dimensions / 2]; pair i is (i, i + half) if `is_half_split`,
    else (2i, 2i + 1). `attention_factor` is YaRN's constant, already contained in cached keys."""

    inverse_frequencies: NDArray[np.float64]
    is_half_split: bool = True
    attention_factor: float = 1.0

    def rotated(self, keys: NDArray[np.float32], shift: NDArray[np.int64]) -> NDArray[np.float32]:
        """Keys [..., tokens, head size] moved by `shift` [tokens] positions, computed in float32.

        A negative shift of the token's own position gives the key before the embedding.
        """
        return self.turned(keys, *self.turn(shift))

    def turn(self, shift: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Cosines and sines [..., rotated dimensions / 2] of a move by `shift` [...] positions."""
        angles = shift.astype(np.float64)[..., None] * self.inverse_frequencies
        return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)

    def turned(
        self, keys: NDArray[np.float32], cos: NDArray[np.float32], sin: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Keys [..., head size] moved as `turn` gave it, cosines and sines broadcast against them."""
        half = len(self.inverse_frequencies)
        out = keys.copy() if keys.shape[-1] > 2 * half else np.empty_like(keys)
        pair = (slice(0, half), slice(half, 2 * half))
        if not self.is_half_split:
            pair = (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
        first, second = keys[..., pair[0]], keys[..., pair[1]]
        np.multiply(first, cos, out=out[..., pair[0]])
        out[..., pair[0]] -= second * sin
        np.multiply(second, cos, out=out[..., pair[1]])
        out[..., pair[1]] += first * sin
        return out
