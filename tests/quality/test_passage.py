"""KV through a store and back."""

from __future__ import annotations

import numpy as np

from hotprefix.pages.codecs.catalogue import build_codec
from hotprefix.quality.model import words_of
from hotprefix.quality.passage import from_words, through, to_words, with_last_bits_flipped
from tests.pages.codecs.blocks import ROTARY, SLOTS, float_format

FORMAT = float_format("f32")
WORDS = words_of(FORMAT, "bf16")


def buffers_of(blocks: int) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [
        random.normal(0, 1, (blocks, *cache.block_shape))
        .astype(np.float32)
        .reshape(blocks, -1)
        .view(np.uint8)
        for cache in FORMAT.inputs
    ]


def test_words_are_the_nearest_and_stay_as_they_are() -> None:
    buffers = buffers_of(3)
    words = to_words(buffers, FORMAT, WORDS)
    assert words.shape == (3, WORDS.block_bytes)
    back = from_words(words, FORMAT, WORDS)
    for before, after in zip(buffers, back, strict=True):
        values = before.view(np.float32)
        assert (np.abs(after.view(np.float32) - values) <= np.abs(values) * 2.0**-8).all()
    np.testing.assert_array_equal(to_words(back, FORMAT, WORDS), words)
    assert to_words(from_words(words, WORDS, WORDS), WORDS, WORDS).tobytes() == words.tobytes()


def test_a_codec_sees_positions_and_the_tail() -> None:
    words = to_words(buffers_of(3), FORMAT, WORDS)
    raw = through(build_codec("raw", WORDS, None), words, SLOTS, 2 * SLOTS + 3)
    np.testing.assert_array_equal(raw.blocks[:2], words[:2])
    assert raw.size == 3 * 12 + WORDS.block_bytes // SLOTS * (2 * SLOTS + 3)
    codec = build_codec("int8", WORDS, ROTARY)
    stored = through(codec, words, SLOTS, 3 * SLOTS)
    out = np.empty_like(words[1])
    codec.decode(codec.encode(words[1], SLOTS, SLOTS), SLOTS, SLOTS, out)
    np.testing.assert_array_equal(stored.blocks[1], out)


def test_every_value_moves_to_its_neighbour() -> None:
    words = to_words(buffers_of(2), FORMAT, WORDS)
    flipped = with_last_bits_flipped(words)
    assert (words.view(np.uint16) != flipped.view(np.uint16)).all()
    np.testing.assert_array_equal(with_last_bits_flipped(flipped), words)
