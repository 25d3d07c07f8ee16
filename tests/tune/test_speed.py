"""A tiny model, really compiled and run."""

from __future__ import annotations

import openvino as ov
import pytest

from hotprefix.base.clock import SystemClock
from hotprefix.engine.graph import kv_format, read_paged_model
from hotprefix.engine.settings import EngineSettings
from hotprefix.engine.stages import compile_network
from hotprefix.models.manifest import ModelManifest
from hotprefix.tune.kv_bytes import KvShape, is_exact, least_bits
from hotprefix.tune.machine import Cores
from hotprefix.tune.model_facts import model_facts, read_model, read_processor
from hotprefix.tune.programme import full_programme, quick_programme
from hotprefix.tune.speed import Programme, measure_speeds
from tests.tune.worlds import machine


def test_a_whole_programme(tiny_model: ModelManifest) -> None:
    processor = read_processor()
    programme = Programme((processor.sixteen_bit, "layered-u8", "u8"), (32, 64), (2, 1), 96, 4, 1)
    told: list[str] = []
    found = measure_speeds(tiny_model, programme, SystemClock(), told.append)
    # Two layers can't be cut behind the third.
    assert list(found.by_precision) == [processor.sixteen_bit, "u8"]
    assert "2 layers" in found.refused["layered-u8"]
    assert set(found.by_threads) == {1, 2}
    assert set(found.prefill_by_chunk) == {32, 64}
    for speed in (*found.by_precision.values(), *found.by_threads.values()):
        assert speed.prefill > 0
        assert speed.decode > 0
    assert len(told) == programme.measurements == 6
    assert found.bytes_per_token[processor.sixteen_bit] == 2 * 2 * 64 * 2
    assert found.resident is not None
    assert found.kv is not None
    assert found.prompt == 96
    facts = model_facts(tiny_model, found.kv)
    assert facts == read_model(tiny_model, processor)
    assert (facts.shape, facts.context) == (KvShape(2, 1, 64), 2048)
    assert facts.weights == tiny_model.graph.with_suffix(".bin").stat().st_size


@pytest.mark.parametrize("precision", ["f32", "f16", "u8", "u4", "layered-u8", "layered-u4"])
def test_bytes_are_those_of_the_compiled_model(tiny_model: ModelManifest, precision: str) -> None:
    core = ov.Core()
    graph = read_paged_model(core, tiny_model.graph, tiny_model.ropes)
    settings = EngineSettings(kv_precision=precision, kv_16bit_layers=1)
    kv = kv_format(*compile_network(core, graph, settings))
    assert KvShape(2, 1, 64).bytes_per_token(precision, 1) == kv.bytes_per_token


def test_bytes_of_the_default_model() -> None:
    shape = KvShape(30, 3, 64)
    told = {
        "f32": 46_080,
        "bf16": 23_040,
        "u8": 13_680,
        "u4": 7_920,
        "layered-u8": 14_616,
        "layered-u4": 9_432,
    }
    assert {name: shape.bytes_per_token(name) for name in told} == told
    assert [name for name in ("auto", *told) if is_exact(name)] == ["auto", "f32", "bf16"]
    assert [least_bits(name) for name in ("auto", "layered-u8", "u4", "layered-u4")] == [16, 8, 4, 4]


def test_programmes() -> None:
    small = full_programme(machine(24), 8192)
    assert (small.chunks, small.threads, small.prompt) == ((256, 128, 512, 1024), (8, 4, 1), 1024)
    assert small.precisions == ("auto", "layered-u8", "u8", "layered-u4", "u4")
    large = quick_programme(machine(64, cores=Cores(1, 1)), 8192)
    assert (large.chunks, large.threads, large.prompt) == ((512, 256), (1,), 512)
    # A prompt and its answer fit in a short context.
    assert full_programme(machine(24), 256).prompt == 128
    assert full_programme(machine(24), 256).chunks == (128,)
    assert full_programme(machine(24), 100).chunks == (32,)
