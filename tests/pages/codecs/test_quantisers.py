"""Single quantisers, on any shape."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hotprefix.pages.codecs.base import BrokenPayload
from hotprefix.pages.codecs.eight_bit import Int8
from hotprefix.pages.codecs.few_bit import FewBits
from hotprefix.pages.codecs.float8 import Float8
from hotprefix.pages.codecs.hadamard import Hadamard
from hotprefix.pages.codecs.planes import UnrotatedPlanes
from hotprefix.pages.codecs.quantiser import CHANNEL, TOKEN, Quantiser
from tests.pages.codecs.blocks import INTERLEAVED, PARTIAL, ROTARY, Rotary

ALL = [
    Int8(CHANNEL),
    Int8(TOKEN),
    FewBits(4, CHANNEL),
    FewBits(4, TOKEN),
    FewBits(2, CHANNEL),
    FewBits(2, TOKEN),
    Hadamard(FewBits(4, CHANNEL)),
    Hadamard(Int8(CHANNEL)),
    Float8(),
]
SHAPES = st.lists(st.integers(1, 7), min_size=2, max_size=4).map(tuple)


def code_of(quantiser: Quantiser, values: NDArray[np.float32]) -> NDArray[np.uint8]:
    code = b"".join(part.tobytes() for part in quantiser.encode(values.copy()))
    return np.frombuffer(code, np.uint8)


def trip(quantiser: Quantiser, values: NDArray[np.float32]) -> NDArray[np.float32]:
    return quantiser.decode(code_of(quantiser, values), values.shape)


@pytest.mark.parametrize("quantiser", ALL, ids=lambda quantiser: quantiser.name)
@settings(max_examples=40, deadline=None)
@given(shape=SHAPES, seed=st.integers(0, 999))
def test_sizes_are_as_said_and_shapes_come_back(
    quantiser: Quantiser, shape: tuple[int, ...], seed: int
) -> None:
    values = np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)
    assert len(code_of(quantiser, values)) == quantiser.size(shape)
    assert trip(quantiser, values).shape == shape


@pytest.mark.parametrize("quantiser", ALL, ids=lambda quantiser: quantiser.name)
def test_zeros_stay_zeros(quantiser: Quantiser) -> None:
    assert not trip(quantiser, np.zeros((2, 5, 8), np.float32)).any()


@pytest.mark.parametrize("bits", [2, 4])
@pytest.mark.parametrize("axis", [CHANNEL, TOKEN])
@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 999), mean=st.sampled_from([0, 3, -3, 1e4, -1e-20]))
def test_few_bits_err_by_half_a_step(bits: int, axis: int, seed: int, mean: float) -> None:
    values = np.random.default_rng(seed).normal(mean, 1, (3, 9, 16)).astype(np.float32)
    spread = np.ptp(values, axis=axis, keepdims=True)
    most = np.abs(values).max(axis=axis, keepdims=True)
    error = np.abs(trip(FewBits(bits, axis), values) - values)
    assert (error <= (spread + most / 32) / (2 * (2**bits - 1))).all()


@pytest.mark.parametrize("quantiser", ALL, ids=lambda quantiser: quantiser.name)
@pytest.mark.parametrize("word", [0x7F80, 0x7FC0, 0xFF80, 0x7F7F])
def test_scales_and_offsets_that_no_values_have_are_refused(quantiser: Quantiser, word: int) -> None:
    """Infinite, not a number, or so large that what they scale would overflow."""
    values = np.random.default_rng(1).normal(0, 1, (2, 8, 8)).astype(np.float32)
    code = code_of(quantiser, values).copy()
    code[:2].view(np.uint16)[0] = word
    with pytest.raises(BrokenPayload):
        quantiser.decode(code, values.shape)


def test_few_bits_reach_both_ends() -> None:
    values = np.linspace(-2, 13, 16, dtype=np.float32)[:, None]
    assert np.array_equal(trip(FewBits(4, CHANNEL), values), values)
    assert np.array_equal(trip(FewBits(2, CHANNEL), values[::5]), values[::5])


def test_a_code_of_three_bits_does_not_exist() -> None:
    with pytest.raises(ValueError, match="2 or 4"):
        FewBits(3, TOKEN)


def e4m3() -> NDArray[np.float64]:
    """All finite values of the format, by its definition."""
    values = [mantissa / 8 * 2.0**-6 for mantissa in range(8)]
    values += [(1 + mantissa / 8) * 2.0 ** (power - 7) for power in range(1, 16) for mantissa in range(8)]
    return np.array(values[:-1])  # the last word means NaN


def test_e4m3_has_the_values_of_its_definition() -> None:
    values = e4m3()
    assert values[-1] == 448
    row = np.concatenate([values, -values]).astype(np.float32)[None]
    assert np.array_equal(trip(Float8(), row), row)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 999), power=st.integers(-30, 30))
def test_e4m3_takes_the_nearest_value(seed: int, power: int) -> None:
    random = np.random.default_rng(seed)
    values = random.normal(0, 1, 64) * 10.0 ** random.uniform(-6, 0, 64)
    values *= 440 / np.abs(values).max()
    values[0] = 448  # so that the scale is a power of two
    row = (values * 2.0**power).astype(np.float32)[None]
    got = trip(Float8(), row)[0].astype(np.float64) / 2.0**power
    table = np.concatenate([e4m3(), -e4m3()])
    nearest = np.abs(values[:, None] - table).min(axis=1)
    assert (np.abs(got - values) <= nearest + 2.0**-10 * np.abs(values) + 2.0**-16).all()


@pytest.mark.parametrize("channels", [1, 2, 12, 48, 64])
def test_hadamard_keeps_lengths_and_spreads_outliers(channels: int) -> None:
    values = np.zeros((1, channels), np.float32)
    values[0, 0] = 10
    group = channels & -channels

    class Watching(Int8):
        def encode(self, values: NDArray[np.float32]) -> list[NDArray[np.generic]]:
            self.seen = values.copy()
            return super().encode(values)

    behind = Watching(CHANNEL)
    assert np.allclose(trip(Hadamard(behind), values), values, atol=0.1)
    assert np.isclose(np.linalg.norm(behind.seen), 10)
    assert np.isclose(np.abs(behind.seen).max(), 10 / np.sqrt(group))


@pytest.mark.parametrize("rotary", [ROTARY, INTERLEAVED, PARTIAL], ids=["half", "interleaved", "partial"])
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 999), position=st.integers(0, 32_768), tokens=st.integers(1, 8))
def test_planes_are_keys_turned_back(rotary: Rotary, seed: int, position: int, tokens: int) -> None:
    keys = np.random.default_rng(seed).normal(0, 1, (3, 2, tokens, 16)).astype(np.float32)
    words = keys.view(np.uint32)
    planes = UnrotatedPlanes(rotary, 16, 8)
    read = planes.read(words, "f32", position)
    assert [plane.shape for plane in read] == planes.shapes(3, 2, tokens)
    assert sum(prod(plane.shape) for plane in read) == keys.size
    turned = rotary.rotated(keys, -(position + np.arange(tokens)))
    pairs = len(rotary.inverse_frequencies)
    first = turned[..., :pairs] if rotary.is_half_split else turned[..., 0 : 2 * pairs : 2]
    second = turned[..., pairs : 2 * pairs] if rotary.is_half_split else turned[..., 1 : 2 * pairs : 2]
    assert np.allclose(read[0], [first, second], atol=1e-6)
    assert all(np.array_equal(rest, keys[..., 2 * pairs :]) for rest in read[1:])
    out = np.empty_like(words)
    planes.write(read, "f32", position, out)
    assert np.allclose(out.view(np.float32), keys, atol=2e-6)
