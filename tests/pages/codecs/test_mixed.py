"""mixed: errors within half a step, exact sinks, bits where they are deserved, and no error but its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hotprefix.base.errors import UnsupportedModel
from hotprefix.pages.codecs.base import BlockCodec, BrokenPayload
from hotprefix.pages.codecs.catalogue import build_codec
from hotprefix.pages.codecs.mixed import MixedCodec
from hotprefix.pages.codecs.mixed_preset import MixedSettings, mixed_codec, parse_settings
from hotprefix.pages.format import CacheInput, KvFormat
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
    integer_format,
    noise,
    numbers,
    random_block,
    spiced_blocks,
)
from tests.pages.codecs.calibrated import calibration_for

FORMAT = float_format()
POSITION = 3 * SLOTS
CALIBRATION = calibration_for()
COLD = ("int2", "int4", "int8", "drop", "fp8")
SINKS = 4


def codec_of(
    kv_format: KvFormat = FORMAT,
    rotary: Rotary | None = ROTARY,
    *,
    is_calibrated: bool = True,
    **settings: float | str,
) -> MixedCodec:
    calibration = CALIBRATION if is_calibrated else None
    made = mixed_codec(kv_format, rotary, calibration=calibration, settings=MixedSettings(**settings))  # type: ignore[arg-type]
    assert isinstance(made, MixedCodec)
    return made


def decoded(codec: BlockCodec, payload: bytes, position: int, tokens: int, size: int) -> NDArray[np.uint8]:
    out = np.full(size, 255, np.uint8)
    codec.decode(payload, position, tokens, out)
    return out


def check_trip(
    codec: MixedCodec,
    kv_format: KvFormat,
    rotary: Rotary | None,
    block: NDArray[np.uint8],
    place: tuple[int, int],
) -> None:
    """Every number is within half of its step before the embedding, besides the arena's own rounding."""
    position, tokens = place
    out = decoded(codec, codec.encode(block, position, tokens), position, tokens, kv_format.block_bytes)
    before, after = numbers(block, kv_format), numbers(out, kv_format)
    assert not after[:, :, :, tokens:].any()
    first = min(max(SINKS - position, 0), tokens)
    assert np.array_equal(after[:, :, :, :first], before[:, :, :, :first], equal_nan=True)
    before, after = before[:, :, :, first:tokens], after[:, :, :, first:tokens]
    if not before.size:
        return
    if not (np.abs(before) < 2.0**100).all():
        assert np.array_equal(after, before, equal_nan=True)
        return
    steps = codec.largest_steps(block, position, tokens).swapaxes(0, 1).astype(np.float64)
    error = np.abs(after - before)
    limit = steps / 2
    if rotary is not None:
        # An error of a pair, wherever it is turned to, stays as long.
        half = len(rotary.inverse_frequencies)
        first_of, second_of = slice(0, half), slice(half, 2 * half)
        if not rotary.is_half_split:
            first_of, second_of = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
        keys = limit[:, 0]
        keys[..., first_of] = keys[..., second_of] = np.hypot(keys[..., first_of], keys[..., second_of])
    sizes = np.abs(before).max(axis=(2, 3, 4), keepdims=True) if rotary is not None else np.abs(before)
    arena = ROUNDING[kv_format.element_type] * np.maximum(sizes + limit, np.abs(after)) + 2.0**-24
    assert (error <= limit * (1 + 2**-10) + arena + 2.0**-100).all()


@pytest.mark.parametrize("cold", COLD)
@pytest.mark.parametrize("is_calibrated", [True, False])
@settings(max_examples=12, deadline=None)
@given(data=st.data(), tokens=st.integers(1, SLOTS), number=st.sampled_from([0, 1, 3, 2000]))
def test_errors_stay_within_half_a_step(
    is_calibrated: bool, cold: str, data: st.DataObject, tokens: int, number: int
) -> None:
    block = data.draw(spiced_blocks(FORMAT, TAME))
    codec = codec_of(is_calibrated=is_calibrated, cold=cold)
    check_trip(codec, FORMAT, ROTARY, block, (number * SLOTS, tokens))


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("rotary", [None, INTERLEAVED, PARTIAL], ids=["none", "interleaved", "partial"])
@settings(max_examples=12, deadline=None)
@given(data=st.data(), tokens=st.integers(1, SLOTS), bits=st.sampled_from([1.5, 4.0, 9.0]))
def test_errors_stay_within_half_a_step_whatever_the_arena(
    kind: str, rotary: Rotary | None, data: st.DataObject, tokens: int, bits: float
) -> None:
    kv_format = float_format(kind)
    block = data.draw(spiced_blocks(kv_format, TAME))
    codec = codec_of(kv_format, rotary, bits=bits)
    check_trip(codec, kv_format, rotary, block, (POSITION, tokens))


@pytest.mark.parametrize("is_calibrated", [True, False])
@settings(max_examples=12, deadline=None)
@given(data=st.data(), tokens=st.integers(1, SLOTS))
def test_numbers_that_can_not_be_rounded_are_kept(
    is_calibrated: bool, data: st.DataObject, tokens: int
) -> None:
    block = data.draw(spiced_blocks(FORMAT, SPECIALS))
    check_trip(codec_of(is_calibrated=is_calibrated), FORMAT, ROTARY, block, (POSITION, tokens))


def test_values_far_out_are_stored_as_they_are() -> None:
    values = np.random.default_rng(1).normal(0, 1, (4, 2, 2, SLOTS, 16)).astype(np.float32)
    values[2, 1, 1, 5, 7] = 3000.0
    kv_format = float_format("f32")
    block = values.reshape(-1).view(np.uint8)
    codec = codec_of(kv_format)
    out = decoded(codec, codec.encode(block, POSITION, SLOTS), POSITION, SLOTS, kv_format.block_bytes)
    assert numbers(out, kv_format)[2, 1, 1, 5, 7] == 3000.0


def test_what_would_not_get_smaller_is_kept_whole() -> None:
    block = random_block(FORMAT, 1, spread=1e6)
    codec = codec_of()
    payload = codec.encode(block, POSITION, SLOTS)
    assert len(payload) == 12 + FORMAT.block_bytes
    assert decoded(codec, payload, POSITION, SLOTS, len(block)).tobytes() == block.tobytes()


def test_more_bits_are_more_bytes_and_less_error() -> None:
    block = random_block(FORMAT, 3)
    sizes, errors = [], []
    for bits in (3.0, 4.0, 5.0, 6.0):
        codec = codec_of(bits=bits)
        payload = codec.encode(block, POSITION, SLOTS)
        out = decoded(codec, payload, POSITION, SLOTS, len(block))
        sizes.append(len(payload))
        errors.append(float(np.square(numbers(out, FORMAT) - numbers(block, FORMAT)).mean()))
    assert sizes == sorted(sizes)
    assert errors == sorted(errors, reverse=True)
    assert errors[0] / errors[2] > 8  # two bits are a factor of 16, less what is clipped and kept


def test_tokens_that_deserve_it_are_nearer() -> None:
    """The router of this calibration scores by the first channel of the value alone."""
    router = np.zeros_like(CALIBRATION.router)
    router[:, :, 16] = 1.0
    shares = np.full(6, 1 / 6, np.float32)
    calibration = calibration_for().__class__(
        "f", "s", CALIBRATION.means * 0, CALIBRATION.steps * 0 + 0.3, CALIBRATION.spreads, router,
        CALIBRATION.bias, shares, CALIBRATION.w, CALIBRATION.b,
    )  # fmt: skip
    values = np.random.default_rng(1).normal(0, 1, (4, 2, 2, SLOTS, 16)).astype(np.float32)
    values[:, 1, :, 2, 0], values[:, 1, :, 5, 0] = 3.0, -3.0
    kv_format = float_format("f32")
    block = values.reshape(-1).view(np.uint8)
    codec = mixed_codec(kv_format, ROTARY, calibration=calibration)
    out = decoded(codec, codec.encode(block, POSITION, SLOTS), POSITION, SLOTS, len(block))
    error = np.square(numbers(out, kv_format) - values).mean(axis=(0, 1, 2, 4))
    assert error[2] < error[5] / 50


def test_dropped_tokens_come_back_as_the_mean() -> None:
    router = np.zeros_like(CALIBRATION.router)
    router[:, :, 16] = 1.0
    calibration = calibration_for().__class__(
        "f", "s", CALIBRATION.means, CALIBRATION.steps, CALIBRATION.spreads, router, CALIBRATION.bias,
        np.full(6, 1 / 6, np.float32), CALIBRATION.w, CALIBRATION.b,
    )  # fmt: skip
    values = np.random.default_rng(1).normal(0, 1, (4, 2, 2, SLOTS, 16)).astype(np.float32)
    values[:, 1, :, :, 0] = 0.0
    values[:, 1, :, 5, 0] = -9.0
    kv_format = float_format("f32")
    block = values.reshape(-1).view(np.uint8)
    codec = mixed_codec(
        kv_format, ROTARY, calibration=calibration, settings=MixedSettings(cold="drop", capacity=2.0)
    )
    kept = mixed_codec(kv_format, ROTARY, calibration=calibration, settings=MixedSettings(capacity=2.0))
    payload = codec.encode(block, POSITION, SLOTS)
    assert len(payload) < len(kept.encode(block, POSITION, SLOTS))
    got = numbers(decoded(codec, payload, POSITION, SLOTS, len(block)), kv_format)
    np.testing.assert_allclose(got[:, 1, :, 5], CALIBRATION.means[1], rtol=1e-6)
    assert not np.allclose(got[:, 1, :, 4], CALIBRATION.means[1], atol=0.2)


@pytest.mark.parametrize("is_calibrated", [True, False])
def test_unused_slots_are_never_written(is_calibrated: bool) -> None:
    codec = codec_of(is_calibrated=is_calibrated)
    mine, other = random_block(FORMAT, 1), random_block(FORMAT, 2)
    shape = (8, 2, SLOTS, 32)
    mixed = other.reshape(shape).copy()
    mixed[:, :, :5] = mine.reshape(shape)[:, :, :5]
    payload = codec.encode(mine, POSITION, 5)
    assert codec.encode(mixed.reshape(-1), POSITION, 5) == payload


def test_payloads_of_other_settings_are_refused() -> None:
    block = random_block(FORMAT, 1)
    payload = codec_of().encode(block, POSITION, SLOTS)
    others: list[BlockCodec] = [
        codec_of(bits=5.0),
        codec_of(cold="int4"),
        codec_of(exact_positions=5),
        codec_of(is_calibrated=False),
        codec_of(rotary=None),
        codec_of(rotary=INTERLEAVED),
        codec_of(float_format("f16")),
        mixed_codec(FORMAT, ROTARY, calibration=calibration_for(seed=2)),
        build_codec("int8", FORMAT, ROTARY),
    ]
    for other in others:
        with pytest.raises(BrokenPayload):
            decoded(other, payload, POSITION, SLOTS, len(block))
    for position, tokens in ((POSITION + 1, SLOTS), (POSITION, SLOTS - 1)):
        with pytest.raises(BrokenPayload):
            decoded(codec_of(), payload, position, tokens, len(block))


def test_a_router_may_change_without_making_payloads_unreadable() -> None:
    block = random_block(FORMAT, 1)
    payload = codec_of(router="equal", cold="int4").encode(block, POSITION, SLOTS)
    expected = decoded(codec_of(router="equal"), payload, POSITION, SLOTS, len(block))
    codec = codec_of(capacity=3.0)
    mine = codec.encode(block, POSITION, SLOTS)
    other = codec_of(router="short-values").encode(block, POSITION, SLOTS)
    assert mine != other
    decoded(codec, other, POSITION, SLOTS, len(block))
    assert expected.any()


@pytest.mark.parametrize("is_calibrated", [True, False])
@pytest.mark.parametrize("cold", ["int2", "drop", "fp8"])
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_damaged_payloads_are_refused_or_decode_to_numbers(
    is_calibrated: bool, cold: str, data: st.DataObject
) -> None:
    """Nothing but `BrokenPayload` comes out, and nothing beside `out` is written."""
    codec = codec_of(is_calibrated=is_calibrated, cold=cold)
    tokens = data.draw(st.integers(1, SLOTS))
    position = data.draw(st.sampled_from([0, POSITION]))
    block = data.draw(st.sampled_from([random_block(FORMAT, 1), random_block(FORMAT, 1, spread=20)]))
    payload = bytearray(codec.encode(block, position, tokens))
    for _ in range(data.draw(st.integers(0, 4))):
        payload[data.draw(st.integers(0, len(payload) - 1))] ^= data.draw(st.integers(1, 255))
    length = data.draw(st.one_of(st.just(len(payload)), st.integers(0, len(payload) + 20)))
    damaged = bytes(payload[:length]).ljust(length, b"\x55")
    guarded = np.full(FORMAT.block_bytes + 32, 77, np.uint8)
    try:
        codec.decode(damaged, position, tokens, guarded[16:-16])
    except BrokenPayload:
        pass
    else:
        assert length == len(payload)
        assert np.isfinite(numbers(guarded[16:-16], FORMAT)).all()
    assert (guarded[:16] == 77).all()
    assert (guarded[-16:] == 77).all()


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_bodies_of_noise_are_refused_or_decode_to_numbers(data: st.DataObject) -> None:
    codec = codec_of(is_calibrated=data.draw(st.booleans()))
    head = codec.encode(random_block(FORMAT, 1), POSITION, SLOTS)[:12]
    body = data.draw(st.binary(max_size=400))
    out = np.zeros(FORMAT.block_bytes, np.uint8)
    try:
        codec.decode(head + body, POSITION, SLOTS, out)
    except BrokenPayload:
        return
    assert np.isfinite(numbers(out, FORMAT)).all()


def test_a_payload_that_unpacks_to_gigabytes_is_refused() -> None:
    import struct
    import zlib

    codec = codec_of()
    head = codec.encode(random_block(FORMAT, 1), POSITION, SLOTS)[:12]
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    bomb = packer.compress(bytes(10_000_000)) + packer.flush()
    payload = head + struct.pack("<II", len(bomb), 0) + bomb
    with pytest.raises(BrokenPayload, match="numbers"):
        decoded(codec, payload, POSITION, SLOTS, FORMAT.block_bytes)


def test_any_thread_may_use_it() -> None:
    codec = codec_of()

    def trip(seed: int) -> bytes:
        payload = codec.encode(random_block(FORMAT, seed), seed * SLOTS, SLOTS)
        return decoded(codec, payload, seed * SLOTS, SLOTS, FORMAT.block_bytes).tobytes()

    alone = [trip(seed) for seed in range(16)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(trip, range(16))) == alone


@pytest.mark.parametrize("tokens", [0, SLOTS + 1])
def test_a_count_that_no_block_has_is_refused(tokens: int) -> None:
    with pytest.raises(ValueError, match=f"1 to {SLOTS}"):
        codec_of().encode(random_block(FORMAT, 1), 0, tokens)


def test_settings_can_be_written_with_the_name() -> None:
    assert parse_settings("5") == MixedSettings(bits=5.0)
    assert parse_settings("cold=drop,bits=3.5,capacity=2") == MixedSettings(3.5, "drop", 2.0)
    block = random_block(FORMAT, 1)
    written = build_codec("mixed:bits=5,cold=int4", FORMAT, ROTARY, calibration=CALIBRATION)
    assert written.encode(block, 0, SLOTS) == codec_of(bits=5.0, cold="int4").encode(block, 0, SLOTS)


@pytest.mark.parametrize(
    "text",
    ["", "five", "bits=", "colour=red", "cold=int1", "1", "bits=nan", "exact_positions=-1", "router=best"],
)
def test_settings_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"mixed|cold|bits|positions|router"):
        build_codec(f"mixed:{text}", FORMAT, ROTARY)


def test_formats_that_it_can_not_take_are_refused() -> None:
    with pytest.raises(UnsupportedModel, match=r"mixed.*u8.*codec raw"):
        mixed_codec(integer_format("u8"), ROTARY)
    uneven = (
        CacheInput("key_cache.0", "bf16", 16, (2, 8, 16)),
        CacheInput("value_cache.0", "bf16", 16, (1, 8, 16)),
    )
    with pytest.raises(UnsupportedModel, match="one shape in all layers"):
        mixed_codec(KvFormat(8, uneven), None)
    with pytest.raises(UnsupportedModel, match=r"for 4 layers.*has 5 and 2 of 16"):
        mixed_codec(float_format(layers=5), ROTARY, calibration=CALIBRATION)
    assert noise(FORMAT, 1).size == FORMAT.block_bytes
