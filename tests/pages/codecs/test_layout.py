"""Keys and values of every layer are found wherever a format puts them."""

from __future__ import annotations

import numpy as np

from hotprefix.pages.codecs.layout import split_layers, tensors_of
from hotprefix.pages.format import CacheInput, KvFormat

SHAPE = (2, 4, 8)


def format_of(*names: str, other: str = "") -> KvFormat:
    shape = {name: (3, 4, 8) if name == other else SHAPE for name in names}
    return KvFormat(4, tuple(CacheInput(name, "bf16", 16, shape[name]) for name in names))


def found(kv_format: KvFormat) -> dict[str, int]:
    """The number written at the start of each tensor, as the layout finds it."""
    block = np.zeros(kv_format.block_bytes, np.uint8)
    offset = 0
    for number, cache in enumerate(kv_format.inputs):
        block[offset : offset + cache.block_bytes].view(np.uint16)[:] = number + 1
        offset += cache.block_bytes
    seen = {}
    for tensors in tensors_of(kv_format):
        for layer, words in zip(tensors.layers, tensors.view(block), strict=True):
            assert (words == words.flat[0]).all()
            seen[f"{'key' if tensors.is_keys else 'value'}_cache.{layer}"] = int(words.flat[0])
    return seen


def expected(kv_format: KvFormat) -> dict[str, int]:
    return {cache.name: number + 1 for number, cache in enumerate(kv_format.inputs)}


def test_keys_and_values_take_turns() -> None:
    names = [f"{kind}_cache.{layer}" for layer in range(30) for kind in ("key", "value")]
    kv_format = format_of(*names)
    assert found(kv_format) == expected(kv_format)
    assert len(tensors_of(kv_format)) == 2


def test_any_order_and_uneven_places() -> None:
    for names in (
        ["key_cache.1", "key_cache.0", "value_cache.0", "value_cache.1"],
        ["value_cache.0", "key_cache.0", "key_cache.1", "key_cache.2", "value_cache.1", "value_cache.2"],
        ["key_cache.0"],
    ):
        assert found(format_of(*names)) == expected(format_of(*names))


def test_a_tensor_of_another_shape_is_its_own_group() -> None:
    names = ["key_cache.0", "key_cache.1", "key_cache.2", "key_cache.3"]
    kv_format = format_of(*names, other="key_cache.1")
    assert found(kv_format) == expected(kv_format)


def test_writing_through_a_view_writes_the_block() -> None:
    kv_format = format_of("key_cache.0", "value_cache.0")
    block = np.zeros(kv_format.block_bytes, np.uint8)
    tensors_of(kv_format)[1].view(block)[0, 1, 2, 3] = 0xABCD
    place = 128 + 2 * (32 + 2 * 8 + 3)
    assert block[place : place + 2].tolist() == [0xCD, 0xAB]
    assert np.count_nonzero(block) == 2


def test_groups_are_cut_by_layers() -> None:
    kv_format = format_of(*(f"key_cache.{layer}" for layer in range(6)))
    (group,) = tensors_of(kv_format)
    parts = list(split_layers(group, frozenset({0, 1, 4})))
    assert [(part.layers, inside) for part, inside in parts] == [
        ((0, 1), True),
        ((2, 3), False),
        ((4,), True),
        ((5,), False),
    ]
    block = np.arange(kv_format.block_bytes, dtype=np.uint64).astype(np.uint8)
    whole = group.view(block)
    assert all(np.array_equal(part.view(block), whole[list(part.layers)]) for part, _ in parts)
