"""What comes back differs from what went in by no more than docs/CODECS.md says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hotprefix.pages.codecs.catalogue import CODECS, build_codec
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary
from tests.pages.codecs.blocks import (
    INTERLEAVED,
    PARTIAL,
    ROTARY,
    ROUNDING,
    SLOTS,
    SPECIALS,
    TAME,
    float_format,
    numbers,
    spiced_blocks,
)

Numbers = NDArray[np.float64]

POSITIONS = st.one_of(st.integers(0, 3), st.integers(0, 32_768 // SLOTS).map(lambda number: number * SLOTS))
TOKENS = st.integers(1, SLOTS)
LOSSY = [name for name in CODECS if name in ("int8", "layered", "int4", "fp8")]
NEGLIGIBLE = 2.0**-110
"""Scales below 2^-120 count as zero."""


def round_trip(name: str, kv_format: KvFormat, rotary: Rotary | None, case: tuple[Numbers, int, int]) -> None:
    """Encode, decode and hold the difference against the stated bound."""
    block, position, tokens = case
    codec = build_codec(name, kv_format, rotary)
    out = np.full(kv_format.block_bytes, 255, np.uint8)
    codec.decode(codec.encode(block, position, tokens), position, tokens, out)
    given_numbers = numbers(block, kv_format)[:, :, :, :tokens]
    got = numbers(out, kv_format)
    assert not got[:, :, :, tokens:].any()
    got = got[:, :, :, :tokens]
    first = 1 if position == 0 else 0
    assert np.array_equal(got[:, :, :, :first], given_numbers[:, :, :, :first], equal_nan=True)
    layers = 3 if name == "layered" else 0
    assert np.array_equal(got[:layers], given_numbers[:layers], equal_nan=True)
    rest, got = given_numbers[layers:, :, :, first:], got[layers:, :, :, first:]
    if not rest.size:
        return
    if not (np.abs(rest) < 2.0**100).all():
        assert np.array_equal(got, rest, equal_nan=True)
        return
    arena = ROUNDING[kv_format.element_type] * np.maximum(np.abs(rest), np.abs(got)) + 2.0**-24 * (
        kv_format.element_type == "f16"
    )
    keys = key_bound(name, rest[:, 0], rotary, position + np.arange(first, tokens))
    for side, bound in ((0, keys), (1, value_bound(name, rest[:, 1]))):
        error = np.abs(got[:, side] - rest[:, side])
        assert (error <= bound + arena[:, side] + NEGLIGIBLE).all()


def key_bound(name: str, keys: Numbers, rotary: Rotary | None, positions: NDArray[np.int64]) -> Numbers:
    if name == "fp8":
        return float_bound(keys)
    if rotary is None:
        return step_bound(keys) if name == "int4" else np.abs(keys).max(axis=2, keepdims=True) / 252
    half = len(rotary.inverse_frequencies)
    first = slice(0, half) if rotary.is_half_split else slice(0, 2 * half, 2)
    second = slice(half, 2 * half) if rotary.is_half_split else slice(1, 2 * half, 2)
    lengths = np.abs(keys)
    lengths[..., first] = lengths[..., second] = np.hypot(keys[..., first], keys[..., second])
    longest = lengths.max(axis=2, keepdims=True)
    if name == "int4":
        bound = step_bound(rotary.rotated(keys.astype(np.float32), -positions).astype(np.float64))
        bound[..., first] = bound[..., second] = np.maximum(bound[..., first], bound[..., second])
    else:
        bound = longest / 252
    bound[..., : 2 * half] *= np.sqrt(2)
    return bound + longest * 2.0**-20


def step_bound(channels: Numbers) -> Numbers:
    """Half a step of four bits over the tokens."""
    most = np.abs(channels).max(axis=2, keepdims=True)
    return (np.ptp(channels, axis=2, keepdims=True) + most / 32) / 30


def value_bound(name: str, values: Numbers) -> Numbers:
    if name == "fp8":
        return float_bound(values)
    if name == "int4":
        size = values.shape[-1]
        behind = values @ hadamard(size)
        most = np.abs(behind).max(axis=-1, keepdims=True)
        half_step = (np.ptp(behind, axis=-1, keepdims=True) + most / 32) / 30
        return np.sqrt(size) * half_step + most * 2.0**-20
    return np.abs(values).max(axis=-1, keepdims=True) / 252


def hadamard(size: int) -> Numbers:
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix / np.sqrt(size)


def float_bound(values: Numbers) -> Numbers:
    return np.maximum(np.abs(values) / 16, 2.0**-18 * np.abs(values).max(axis=-1, keepdims=True))


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("name", LOSSY)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), position=POSITIONS, tokens=TOKENS)
def test_errors_stay_within_the_bound(
    name: str, kind: str, data: st.DataObject, position: int, tokens: int
) -> None:
    kv_format = float_format(kind)
    block = data.draw(spiced_blocks(kv_format, TAME))
    round_trip(name, kv_format, ROTARY, (block, position, tokens))


@pytest.mark.parametrize("rotary", [None, INTERLEAVED, PARTIAL], ids=["none", "interleaved", "partial"])
@pytest.mark.parametrize("name", LOSSY)
@settings(max_examples=20, deadline=None)
@given(data=st.data(), position=POSITIONS, tokens=TOKENS)
def test_errors_stay_within_the_bound_whatever_the_rotary(
    name: str, rotary: Rotary | None, data: st.DataObject, position: int, tokens: int
) -> None:
    kv_format = float_format()
    block = data.draw(spiced_blocks(kv_format, TAME))
    round_trip(name, kv_format, rotary, (block, position, tokens))


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("name", LOSSY)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), position=POSITIONS, tokens=TOKENS)
def test_no_number_is_too_wild(name: str, kind: str, data: st.DataObject, position: int, tokens: int) -> None:
    kv_format = float_format(kind)
    block = data.draw(spiced_blocks(kv_format, SPECIALS))
    round_trip(name, kv_format, ROTARY, (block, position, tokens))
