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
        half = len(self.inverse_frequencies)
        angles = shift.astype(np.float64)[:, None] * self.inverse_frequencies
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        out = keys.copy()
        if self.is_half_split:
            first, second = keys[..., :half], keys[..., half : 2 * half]
            out[..., :half] = first * cos - second * sin
            out[..., half : 2 * half] = second * cos + first * sin
        else:
            first, second = keys[..., 0 : 2 * half : 2], keys[..., 1 : 2 * half : 2]
            out[..., 0 : 2 * half : 2] = first * cos - second * sin
            out[..., 1 : 2 * half : 2] = second * cos + first * sin
        return out
