"""A network cut between layers computes what the whole one does, and keeps two types of KV."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from numpy.typing import NDArray

from hotprefix.base.errors import UnsupportedModel
from hotprefix.base.ids import BlockId
from hotprefix.engine.graph import compile_paged_model, kv_format, read_paged_model
from hotprefix.engine.runner import PagedRunner, Row
from hotprefix.engine.settings import MIB, EngineSettings
from hotprefix.engine.stages import compile_network, cut_model
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import ModelStore
from hotprefix.pages.arena import BlockArena
from tests.engine.bits import Bench
from tests.engine.test_exactness import compare
from tests.tiny_gguf import Shape, write_tiny_gguf


def prepared(folder: Path, family: str = "llama", layers: int = 5) -> ModelManifest:
    shape = Shape(hidden=64, layers=layers, heads=4, kv_heads=2, head_dim=16, ffn=96)
    source = write_tiny_gguf(folder / f"{family}{layers}.gguf", family, shape=shape)
    return ModelStore(folder / "store").resolve(str(source))


@pytest.fixture(scope="module")
def five_layers(tmp_path_factory: pytest.TempPathFactory) -> ModelManifest:
    return prepared(tmp_path_factory.mktemp("five"))


def logits(parts: tuple[ov.CompiledModel, ...], chunks: list[list[int]]) -> NDArray[np.float32]:
    """What a new arena gives behind each chunk of one prompt."""
    arena = BlockArena(kv_format(*parts), 16)
    runner = PagedRunner(parts[0], arena, BlockId(15), *parts[1:])
    table, past, out = [BlockId(block) for block in range(15)], 0, []
    for chunk in chunks:
        out.append(runner.run([Row(chunk, past, table, True)]).copy())
        past += len(chunk)
    return np.concatenate(out)


def same_as_whole(manifest: ModelManifest, layers: int) -> None:
    """In 32 bits nothing is rounded at the cut: both ways give the same bits, in prefill and decoding."""
    core = ov.Core()
    whole = read_paged_model(core, manifest.graph)
    parts = tuple(compile_paged_model(core, part, "f32", None) for part in cut_model(whole, layers))
    chunks = [list(range(5, 105)), list(range(7, 60)), [9], [11]]
    expected = logits((compile_paged_model(core, whole, "f32", None),), chunks)
    assert np.ptp(expected) > 1
    np.testing.assert_array_equal(logits(parts, chunks), expected)


@pytest.mark.parametrize("layers", [1, 3, 4])
def test_both_parts_compute_what_the_whole_does(five_layers: ModelManifest, layers: int) -> None:
    same_as_whole(five_layers, layers)


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
def test_other_families(tmp_path: Path, family: str) -> None:
    same_as_whole(prepared(tmp_path, family), 2)


@pytest.mark.model
def test_the_default_model(default_model: ModelManifest) -> None:
    same_as_whole(default_model, 3)


def test_each_part_has_its_own_layers_and_nothing_twice(five_layers: ModelManifest) -> None:
    model = read_paged_model(ov.Core(), five_layers.graph)
    before = len(model.get_ordered_ops())
    first, second = cut_model(model, 2)
    caches = [
        {port.get_any_name() for port in part.inputs if "cache." in port.get_any_name()}
        for part in (first, second)
    ]
    assert caches[0] == {f"{kind}_cache.{layer}" for layer in (0, 1) for kind in ("key", "value")}
    assert caches[1] == {f"{kind}_cache.{layer}" for layer in (2, 3, 4) for kind in ("key", "value")}
    matrices = [sum(node.get_type_name() == "MatMul" for node in part.get_ops()) for part in (first, second)]
    # Seven a layer, the rotary angles in both parts, and the output matrix in the second.
    assert matrices == [2 * 7 + 1, 3 * 7 + 2]
    assert len(model.get_ordered_ops()) == before, "the model itself was changed"


def test_the_format_lists_both_types(five_layers: ModelManifest) -> None:
    core = ov.Core()
    model = read_paged_model(core, five_layers.graph)
    formats = {
        precision: kv_format(*compile_network(core, model, EngineSettings(kv_precision=precision)))
        for precision in ("u8", "u4", "layered-u8", "layered-u4")
    }
    assert [cache.bits for cache in formats["layered-u8"].inputs] == [16] * 6 + [8] * 4
    assert [cache.bits for cache in formats["layered-u4"].inputs] == [16] * 6 + [4] * 4
    for deep in ("u8", "u4"):
        layered, plain = formats[f"layered-{deep}"], formats[deep]
        assert layered.is_quantised
        assert layered.block_size == plain.block_size == 32
        # Keys and values of 2 heads, 32 tokens, 16 elements, 2 bytes.
        assert layered.block_bytes == 3 * 2 * (2 * 32 * 16 * 2) + plain.block_bytes // 5 * 2
    assert len({kv.describe() for kv in formats.values()}) == 4


@pytest.mark.parametrize("precision", ["layered-u8", "layered-u4"])
def test_cached_equals_uncached(five_layers: ModelManifest, precision: str) -> None:
    assert compare(five_layers, precision=precision, cases=9, longest=200, answer=12) > 250


@pytest.mark.model
@pytest.mark.slow
def test_cached_equals_uncached_on_the_default_model(default_model: ModelManifest) -> None:
    assert compare(default_model, precision="layered-u8", cases=2, longest=500, answer=8) > 100


def test_hidden_states_are_handed_on_without_a_copy(five_layers: ModelManifest) -> None:
    bench = Bench(five_layers, EngineSettings(arena_bytes=MIB, kv_precision="layered-u8"))
    bench.run([list(range(3, 70))], 3)
    runner = bench.stepper._parts.runner
    assert isinstance(runner, PagedRunner)
    first, second = runner._requests
    handed = second.get_tensor("hidden_states").data
    assert np.shares_memory(handed, first.get_output_tensor(0).data)


def test_a_model_with_too_few_layers_is_refused(tiny_model: ModelManifest) -> None:
    settings = EngineSettings(arena_bytes=MIB, kv_precision="layered-u8")
    with pytest.raises(
        UnsupportedModel, match=r"has 2 layers: between 1 and 1 of them can stay 16-bit, not 3"
    ):
        Bench(tiny_model, settings)
