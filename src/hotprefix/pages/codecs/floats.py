"""16- and 32-bit floats as the arena holds them ↔ float32, whole arrays at a time."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
Words: TypeAlias = NDArray[Any]
"""Floats of the arena by their bits: uint16 or uint32."""

LIMIT = 2.0**100
"""Quantisers take absolute values below this: nothing they compute from them overflows."""

_F16_MOST = np.float32(65504)
_SIGNLESS = {16: 0x7FFF, 32: 0x7FFF_FFFF}
_FIRST_WILD = {"bf16": (100 + 127) << 7, "f16": 0x7C00, "f32": (100 + 127) << 23}
"""The bits, less the sign, from which on a word is NaN, infinite or not below LIMIT."""

FLOAT_TYPES = frozenset(_FIRST_WILD)


def word_type(element_type: str) -> type[np.uint16] | type[np.uint32]:
    """The unsigned integer as wide as a float type."""
    return np.uint32 if element_type == "f32" else np.uint16


def is_calm(words: Words, element_type: str) -> bool:
    """Whether all are finite and below LIMIT."""
    signless = np.bitwise_and(words, words.dtype.type(_SIGNLESS[words.dtype.itemsize * 8]))
    return signless.size == 0 or int(signless.max()) < _FIRST_WILD[element_type]


def widen(words: Words, element_type: str, out: Floats) -> None:
    """Exact conversion to float32."""
    if element_type == "bf16":
        np.left_shift(words, 16, out=out.view(np.uint32), dtype=np.uint32, casting="unsafe")
    elif element_type == "f16":
        np.copyto(out, words.view(np.float16))
    else:
        np.copyto(out, words.view(np.float32))


def narrow(values: Floats, element_type: str, out: Words) -> None:
    """Rounding to the nearest float of the arena. `values` is finite, and used up.

    Half-precision values beyond the largest one become the largest one.
    """
    if element_type == "bf16":
        bits = values.view(np.uint32)
        bits += np.uint32(0x8000)
        np.right_shift(bits, 16, out=out, dtype=np.uint32, casting="unsafe")
    elif element_type == "f16":
        np.clip(values, -_F16_MOST, _F16_MOST, out=values)
        np.copyto(out.view(np.float16), values, casting="unsafe")
    else:
        np.copyto(out.view(np.float32), values)
