"""Words of the arena ↔ float32 planes that a quantiser takes: as they are, or before the rotary embedding."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hotprefix.pages.codecs.floats import Floats, Words, narrow, widen
from hotprefix.pages.rotary import Rotary


class Planes(Protocol):
    """A reversible view of [layers, heads, tokens, head size] words as float32 arrays [..., tokens, n]."""

    def shapes(self, layers: int, heads: int, tokens: int) -> list[tuple[int, ...]]:
        """Shapes of the arrays."""
        ...

    def read(self, words: Words, element_type: str, position: int) -> list[Floats]:
        """Fresh arrays; the first token is at `position`."""
        ...

    def write(self, planes: list[Floats], element_type: str, position: int, out: Words) -> None:
        """Round planes into the arena's words. The planes are used up."""
        ...


class StraightPlanes:
    """The words themselves."""

    def __init__(self, head_size: int) -> None:
        self._head_size = head_size

    def shapes(self, layers: int, heads: int, tokens: int) -> list[tuple[int, ...]]:
        return [(layers, heads, tokens, self._head_size)]

    def read(self, words: Words, element_type: str, position: int) -> list[Floats]:
        values = np.empty(words.shape, np.float32)
        widen(words, element_type, values)
        return [values]

    def write(self, planes: list[Floats], element_type: str, position: int, out: Words) -> None:
        narrow(planes[0], element_type, out)


class UnrotatedPlanes:
    """Keys as they were before the rotary embedding: what one channel holds then varies little over tokens.

    The two members of every rotated pair are apart, [2, layers, heads, tokens, pairs], and channels that
    are not rotated follow. All arithmetic is float32, angles float64.
    """

    def __init__(self, rotary: Rotary, head_size: int, slots: int) -> None:
        frequencies = rotary.inverse_frequencies
        pairs = len(frequencies)
        self._pairs = pairs
        self._rest = head_size - 2 * pairs
        self._frequencies = frequencies
        # Turning by position + i is turning by position, then by i.
        self._steps = np.exp(1j * np.arange(slots)[:, None] * frequencies)
        if rotary.is_half_split:
            self._members = (slice(0, pairs), slice(pairs, 2 * pairs))
        else:
            self._members = (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2))

    def shapes(self, layers: int, heads: int, tokens: int) -> list[tuple[int, ...]]:
        shapes: list[tuple[int, ...]] = [(2, layers, heads, tokens, self._pairs)]
        if self._rest:
            shapes.append((layers, heads, tokens, self._rest))
        return shapes

    def read(self, words: Words, element_type: str, position: int) -> list[Floats]:
        layers, heads, tokens, size = words.shape
        shapes = self.shapes(layers, heads, tokens)
        cached = np.empty(shapes[0], np.float32)
        for plane, members in zip(cached, self._members, strict=True):
            widen(words[..., members], element_type, plane)
        planes = [self._turned(cached, position, -1)]
        if self._rest:
            rest = np.empty(shapes[1], np.float32)
            widen(words[..., size - self._rest :], element_type, rest)
            planes.append(rest)
        return planes

    def write(self, planes: list[Floats], element_type: str, position: int, out: Words) -> None:
        turned = self._turned(planes[0], position, 1)
        for plane, members in zip(turned, self._members, strict=True):
            narrow(plane, element_type, out[..., members])
        if self._rest:
            narrow(planes[1], element_type, out[..., out.shape[-1] - self._rest :])

    def _turned(self, planes: Floats, position: int, direction: int) -> Floats:
        turns = self._steps[: planes.shape[3]] * np.exp(1j * position * self._frequencies)
        cos = turns.real.astype(np.float32)
        sin = (direction * turns.imag).astype(np.float32)
        first, second = planes
        out = np.empty_like(planes)
        product = np.empty_like(first)
        np.multiply(first, cos, out=out[0])
        np.multiply(second, sin, out=product)
        out[0] -= product
        np.multiply(second, cos, out=out[1])
        np.multiply(first, sin, out=product)
        out[1] += product
        return out


def planes_for_keys(rotary: Rotary | None, head_size: int, slots: int) -> Planes:
    """Keys before the embedding where it is known, else as they are."""
    if rotary is None:
        return StraightPlanes(head_size)
    return UnrotatedPlanes(rotary, head_size, slots)
