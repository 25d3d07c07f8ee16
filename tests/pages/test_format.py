"""KV formats: sizes, and a description that tells layouts apart."""

from __future__ import annotations

import itertools

import pytest

from hotprefix.pages.format import CacheInput, KvFormat

BF16 = CacheInput("key_cache.0", "bf16", 16, (3, 32, 64))
U8 = CacheInput("key_cache.0", "u8", 8, (3, 40, 64))
U4 = CacheInput("key_cache.0", "u4", 4, (3, 48, 64))


@pytest.mark.parametrize(("cache", "size"), [(BF16, 12288), (U8, 7680), (U4, 4608)])
def test_block_bytes_count_packed_elements(cache: CacheInput, size: int) -> None:
    assert cache.block_bytes == size


def test_a_format_adds_its_tensors_up() -> None:
    both = KvFormat(32, (BF16, CacheInput("value_cache.0", "bf16", 16, (3, 32, 64))))
    assert both.block_bytes == 2 * 12288
    assert both.element_type == "bf16"


@pytest.mark.parametrize(
    ("inputs", "quantised"), [((BF16,), False), ((U8,), True), ((U4,), True), ((BF16, U8), True)]
)
def test_quantised_if_any_tensor_is(inputs: tuple[CacheInput, ...], quantised: bool) -> None:
    assert KvFormat(32, inputs).is_quantised is quantised


def test_descriptions_differ_whenever_bytes_would_lie_elsewhere() -> None:
    value = CacheInput("value_cache.0", "bf16", 16, (3, 32, 64))
    formats = [
        KvFormat(32, (BF16,)),
        KvFormat(16, (BF16,)),
        KvFormat(32, (U8,)),
        KvFormat(32, (U4,)),
        KvFormat(32, (BF16, value)),
        KvFormat(32, (value, BF16)),
        KvFormat(32, (CacheInput("key_cache.0", "f16", 16, (3, 32, 64)),)),
        KvFormat(32, (CacheInput("key_cache.0", "bf16", 16, (3, 64, 32)),)),
        KvFormat(32, (CacheInput("key_cache.0", "bf16", 16, (33, 264)),)),
    ]
    for left, right in itertools.combinations(formats, 2):
        assert left.describe() != right.describe()
    assert formats[0].describe() == KvFormat(32, (BF16,)).describe()
