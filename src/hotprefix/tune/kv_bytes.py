"""Bytes that the keys and values of a token take in each precision of the arena."""

from __future__ import annotations

from dataclasses import dataclass

BLOCK = 32
"""Tokens in a block of the arena: over so many the scales of key channels are shared."""
_SCALE_BITS = 64
"""A scale and a zero point, 32 bits each."""
_BITS = {"f32": 32, "f16": 16, "bf16": 16, "u8": 8, "u4": 4}
_LAYERED = {"layered-u8": "u8", "layered-u4": "u4"}
PRECISIONS = ("f32", "f16", "bf16", "layered-u8", "u8", "layered-u4", "u4")
"""From the most exact to the smallest; `auto` is one of the first three."""


@dataclass(frozen=True, slots=True)
class KvShape:
    """Layers that keep KV, key/value heads of each, elements of a head."""

    layers: int
    heads: int
    head_size: int

    def bytes_per_token(self, precision: str, sixteen_bit_layers: int = 3) -> float:
        """`precision` as `--kv-precision` has it, but `auto`; scales included.

        Integers keep a scale and a zero point for each token's values and for each channel of a block's keys.
        """
        deep = _LAYERED.get(precision)
        if deep is None:
            return self.layers * self._layer(precision)
        first = min(sixteen_bit_layers, self.layers)
        return first * self._layer("f16") + (self.layers - first) * self._layer(deep)

    def _layer(self, kind: str) -> float:
        bits = _BITS[kind]
        values = keys = self.head_size * bits
        if bits <= 8:
            values += _SCALE_BITS
            keys += self.head_size * _SCALE_BITS // BLOCK
        return self.heads * (keys + values) / 8


def is_exact(precision: str) -> bool:
    """Whether keys and values are kept as they were computed, so that reuse is exact at every token."""
    return precision == "auto" or _BITS.get(precision, 0) >= 16


def least_bits(precision: str) -> int:
    """Bits of the coarsest elements."""
    return 16 if precision == "auto" else _BITS[_LAYERED.get(precision, precision)]
