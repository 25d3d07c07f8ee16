"""Formats, and blocks of all sorts of numbers."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from hotprefix.pages.codecs.base import Block
from hotprefix.pages.format import CacheInput, KvFormat
from hotprefix.pages.rotary import Rotary

SLOTS = 8
BITS = {"bf16": 16, "f16": 16, "f32": 32}
ROUNDING = {"bf16": 2.0**-8, "f16": 2.0**-11, "f32": 2.0**-21}
"""A float of the arena over its distance to the next one, and more than float32 loses on the way."""

ROTARY = Rotary(10_000.0 ** -(np.arange(8) / 8))
INTERLEAVED = Rotary(ROTARY.inverse_frequencies, is_half_split=False)
PARTIAL = Rotary(10_000.0 ** -(np.arange(3) / 3))


def float_format(element_type: str = "bf16", layers: int = 4, heads: int = 2, size: int = 16) -> KvFormat:
    inputs = []
    for layer in range(layers):
        for kind in ("key", "value"):
            name = f"{kind}_cache.{layer}"
            inputs.append(CacheInput(name, element_type, BITS[element_type], (heads, SLOTS, size)))
    return KvFormat(SLOTS, tuple(inputs))


def integer_format(element_type: str) -> KvFormat:
    bits = int(element_type[1:])
    key = CacheInput("key_cache.0", element_type, bits, (2, SLOTS + 8, 16))
    value = CacheInput("value_cache.0", element_type, bits, (2, SLOTS, 24))
    return KvFormat(SLOTS, (key, value))


def numbers(block: Block, kv_format: KvFormat) -> NDArray[np.float64]:
    """[layers, key or value, heads, slots, head size]."""
    kind = kv_format.element_type
    heads, slots, size = kv_format.inputs[0].block_shape
    if kind == "bf16":
        values = (block.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        values = block.view(np.float16 if kind == "f16" else np.float32)
    return values.reshape(-1, 2, heads, slots, size).astype(np.float64)


def block_of(values: NDArray[np.float64], element_type: str) -> Block:
    """The bytes of a block that holds `values`, as near as its type can."""
    with np.errstate(over="ignore"):
        if element_type == "bf16":
            words = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
            return words.reshape(-1).view(np.uint8)
        kind = np.float16 if element_type == "f16" else np.float32
        return np.ascontiguousarray(values, kind).reshape(-1).view(np.uint8)


def random_block(kv_format: KvFormat, seed: int, spread: float = 1.0) -> Block:
    heads, slots, size = kv_format.inputs[0].block_shape
    shape = (len(kv_format.inputs) // 2, 2, heads, slots, size)
    return block_of(np.random.default_rng(seed).normal(0, spread, shape), kv_format.element_type)


def noise(kv_format: KvFormat, seed: int) -> Block:
    """Any bytes."""
    return np.random.default_rng(seed).integers(0, 256, kv_format.block_bytes, dtype=np.uint8)


TAME = st.sampled_from([0.0, -0.0, 1e-45, 6e-8, 1e-30, 1.0, -448.0, 65504.0, 1e6, -1e25])
WILD = st.sampled_from([-1e29, 1e31, 3e38, float("inf"), float("-inf"), float("nan")])
SPECIALS = TAME | WILD


@st.composite
def spiced_blocks(draw: st.DrawFn, kv_format: KvFormat, specials: st.SearchStrategy[float]) -> Block:
    """Normal numbers of some size with special ones in single places, tokens, channels or whole layers."""
    heads, slots, size = kv_format.inputs[0].block_shape
    shape = (len(kv_format.inputs) // 2, 2, heads, slots, size)
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = random.normal(draw(st.sampled_from([0, 0, 30])), 10.0 ** draw(st.integers(-12, 3)), shape)
    for _ in range(draw(st.integers(0, 3))):
        place = tuple(draw(st.one_of(st.just(slice(None)), st.integers(0, most - 1))) for most in shape)
        values[place] = draw(specials)
    return block_of(values, kv_format.element_type)
