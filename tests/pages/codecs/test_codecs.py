"""Every codec: what a payload holds, and what it refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.pages.codecs.base import BlockCodec, BrokenPayload
from hotprefix.pages.codecs.catalogue import CODECS, build_codec
from hotprefix.pages.format import CacheInput, KvFormat
from hotprefix.pages.rotary import Rotary
from tests.pages.codecs.blocks import (
    INTERLEAVED,
    ROTARY,
    SLOTS,
    block_of,
    float_format,
    integer_format,
    noise,
    numbers,
    random_block,
)

NAMES = [name for name in CODECS if name in ("raw", "int8", "layered", "int4", "fp8")]
LOSSY = [name for name in NAMES if name != "raw"]
FORMAT = float_format()
POSITION = 3 * SLOTS


def decoded(codec: BlockCodec, payload: bytes, position: int, tokens: int, size: int) -> bytes:
    out = np.full(size, 255, np.uint8)
    codec.decode(payload, position, tokens, out)
    return out.tobytes()


@pytest.mark.parametrize("kind", ["bf16", "f16", "f32"])
@pytest.mark.parametrize("tokens", [1, 5, SLOTS])
def test_raw_gives_back_the_very_bits(kind: str, tokens: int) -> None:
    kv_format = float_format(kind)
    block = noise(kv_format, 1)
    codec = build_codec("raw", kv_format, None)
    got = decoded(codec, codec.encode(block, 0, tokens), 0, tokens, kv_format.block_bytes)
    token_bytes = kv_format.block_bytes // 16 // SLOTS
    expected = block.reshape(-1, SLOTS, token_bytes).copy()
    expected[:, tokens:] = 0
    assert got == expected.tobytes()
    assert codec.is_lossless


@pytest.mark.parametrize("kind", ["u8", "u4"])
def test_raw_keeps_blocks_of_integers_whole(kind: str) -> None:
    kv_format = integer_format(kind)
    block = noise(kv_format, 1)
    codec = build_codec("raw", kv_format, None)
    payload = codec.encode(block, 0, SLOTS)
    assert decoded(codec, payload, 0, SLOTS, kv_format.block_bytes) == block.tobytes()
    with pytest.raises(ValueError, match="stored whole"):
        codec.encode(block, 0, SLOTS - 1)


@pytest.mark.parametrize("name", NAMES)
def test_unused_slots_are_never_written(name: str) -> None:
    """They may be another request's, or not numbers at all."""
    codec = build_codec(name, FORMAT, ROTARY)
    mine = numbers(random_block(FORMAT, 1), FORMAT)
    other = mine.copy()
    other[:, :, :, 5:] = np.nan
    payload = codec.encode(block_of(mine, "bf16"), POSITION, 5)
    assert codec.encode(block_of(other, "bf16"), POSITION, 5) == payload
    assert len(payload) < codec.block_bytes


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("tokens", [0, -1, SLOTS + 1])
def test_a_count_that_no_block_has_is_refused(name: str, tokens: int) -> None:
    codec = build_codec(name, FORMAT, ROTARY)
    with pytest.raises(ValueError, match=f"1 to {SLOTS}"):
        codec.encode(random_block(FORMAT, 1), 0, tokens)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("position", [-1, 2**32])
def test_a_position_that_no_block_has_is_refused(name: str, position: int) -> None:
    codec = build_codec(name, FORMAT, ROTARY)
    block = random_block(FORMAT, 1)
    payload = codec.encode(block, 0, SLOTS)
    with pytest.raises(ValueError, match="position"):
        codec.encode(block, position, SLOTS)
    with pytest.raises(ValueError, match="position"):
        codec.decode(payload, position, SLOTS, block)


@pytest.mark.parametrize("name", NAMES)
def test_block_bytes_is_what_a_full_block_takes(name: str) -> None:
    codec = build_codec(name, FORMAT, ROTARY)
    assert codec.name == name
    assert codec.is_lossless is (name == "raw")
    assert len(codec.encode(random_block(FORMAT, 1), POSITION, SLOTS)) == codec.block_bytes


# Per tensor: 2 heads, 8 slots, 16 channels. Scales of keys 2 x 16, of values 2 x 8, two bytes each.
KEY_8, VALUE_8, PLAIN = 64 + 256, 32 + 256, 512
SIZES = {
    "raw": 4 * (PLAIN + PLAIN),
    "int8": 4 * (KEY_8 + VALUE_8),
    "layered": 3 * (PLAIN + PLAIN) + KEY_8 + VALUE_8,
    "int4": 4 * (2 * 64 + 128 + 2 * 32 + 128),
    "fp8": 4 * 2 * VALUE_8,
}


@pytest.mark.parametrize("name", NAMES)
def test_sizes_are_as_documented(name: str) -> None:
    assert build_codec(name, FORMAT, ROTARY).block_bytes == 12 + SIZES[name]


def test_ratios_of_the_default_models_format() -> None:
    """Blocks of 32 tokens, 30 layers, 3 heads of 64 in bf16; what int8 and layered are chosen for."""
    inputs = [
        CacheInput(f"{kind}_cache.{layer}", "bf16", 16, (3, 32, 64))
        for layer in range(30)
        for kind in ("key", "value")
    ]
    kv_format = KvFormat(32, tuple(inputs))
    rotary = Rotary(100_000.0 ** -(np.arange(32) / 32))
    for name, least in (("int8", 1.9), ("layered", 1.75), ("int4", 3.3), ("fp8", 1.9)):
        assert kv_format.block_bytes / build_codec(name, kv_format, rotary).block_bytes >= least


def test_keys_are_quantised_as_they_were_before_the_embedding() -> None:
    """A mean that all tokens share costs nothing there, and most of the range behind it."""
    kv_format = float_format("f32")
    random = np.random.default_rng(3)
    values = random.normal(20, 1, (4, 2, 2, SLOTS, 16))
    before = values[:, 0].astype(np.float32)
    values[:, 0] = ROTARY.rotated(before, POSITION + np.arange(SLOTS))
    errors = []
    for rotary in (ROTARY, None):
        codec = build_codec("int4", kv_format, rotary)
        out = np.empty(kv_format.block_bytes, np.uint8)
        codec.decode(codec.encode(block_of(values, "f32"), POSITION, SLOTS), POSITION, SLOTS, out)
        errors.append(((numbers(out, kv_format) - values)[:, 0] ** 2).sum())
    assert errors[0] < errors[1] / 10


def test_layers_that_are_kept_can_be_chosen() -> None:
    block = random_block(FORMAT, 1)
    codec = build_codec("layered", FORMAT, ROTARY, exact_layers=range(2, 4))
    out = np.empty_like(block)
    codec.decode(codec.encode(block, POSITION, SLOTS), POSITION, SLOTS, out)
    before, after = numbers(block, FORMAT), numbers(out, FORMAT)
    assert np.array_equal(before[2:], after[2:])
    assert all((before[layer] != after[layer]).any() for layer in (0, 1))


@pytest.mark.parametrize("name", LOSSY)
def test_the_first_positions_can_be_kept(name: str) -> None:
    block = random_block(FORMAT, 1)
    for kept in (0, 3, SLOTS + 2):
        codec = build_codec(name, FORMAT, ROTARY, exact_positions=kept)
        for position in (0, SLOTS):
            here = min(max(kept - position, 0), SLOTS)
            out = np.empty_like(block)
            codec.decode(codec.encode(block, position, SLOTS), position, SLOTS, out)
            before, after = numbers(block, FORMAT)[3], numbers(out, FORMAT)[3]
            assert np.array_equal(before[:, :, :here], after[:, :, :here])
            assert here == SLOTS or (before[:, :, here:] != after[:, :, here:]).any()


@pytest.mark.parametrize("name", NAMES)
def test_a_payload_of_something_else_is_refused(name: str) -> None:
    codec = build_codec(name, FORMAT, ROTARY)
    block = random_block(FORMAT, 1)
    payload = codec.encode(block, POSITION, SLOTS)
    others = [build_codec(other, FORMAT, ROTARY) for other in NAMES if other != name]
    others += [build_codec(name, float_format("f16"), ROTARY)]
    if name not in ("raw", "fp8"):
        others += [build_codec(name, FORMAT, rotary) for rotary in (None, INTERLEAVED)]
    if name != "raw":
        others.append(build_codec(name, FORMAT, ROTARY, exact_positions=7))
    for other in others:
        with pytest.raises(BrokenPayload):
            decoded(other, payload, POSITION, SLOTS, FORMAT.block_bytes)
    for position, tokens in ((POSITION + 1, SLOTS), (0, SLOTS), (POSITION, SLOTS - 1)):
        with pytest.raises(BrokenPayload):
            decoded(codec, payload, position, tokens, FORMAT.block_bytes)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_damaged_payloads_are_refused_or_decode_to_numbers(name: str, data: st.DataObject) -> None:
    """Nothing but `BrokenPayload` comes out, and nothing beside `out` is written."""
    codec = build_codec(name, FORMAT, ROTARY)
    tokens = data.draw(st.integers(1, SLOTS))
    position = data.draw(st.sampled_from([0, POSITION]))
    payload = bytearray(codec.encode(random_block(FORMAT, 1), position, tokens))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(payload) - 1))
        flipped = data.draw(st.integers(1, 255))
        payload[at] ^= flipped
    head_is_hit = bytes(payload[:12]) != codec.encode(random_block(FORMAT, 1), position, tokens)[:12]
    length = data.draw(st.one_of(st.just(len(payload)), st.integers(0, len(payload) + 20)))
    is_cut = length != len(payload)
    damaged = bytes(payload[:length]).ljust(length, b"\x55")
    guarded = np.full(FORMAT.block_bytes + 32, 77, np.uint8)
    try:
        codec.decode(damaged, position, tokens, guarded[16:-16])
    except BrokenPayload:
        pass
    else:
        assert not head_is_hit
        assert not is_cut
    assert (guarded[:16] == 77).all()
    assert (guarded[-16:] == 77).all()


@pytest.mark.parametrize("name", NAMES)
def test_any_thread_may_use_a_codec(name: str) -> None:
    codec = build_codec(name, FORMAT, ROTARY)

    def trip(seed: int) -> bytes:
        payload = codec.encode(random_block(FORMAT, seed), seed * SLOTS, SLOTS)
        return decoded(codec, payload, seed * SLOTS, SLOTS, FORMAT.block_bytes)

    alone = [trip(seed) for seed in range(16)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(trip, range(16))) == alone
