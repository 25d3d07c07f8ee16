"""What a prepared model is made of, as far as sizes depend on it."""

from __future__ import annotations

from dataclasses import dataclass

import openvino as ov

from hotprefix.engine.graph import computing_type, kv_format, read_paged_model
from hotprefix.engine.settings import EngineSettings
from hotprefix.engine.stages import compile_network
from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.codecs.layout import layer_of
from hotprefix.pages.format import KvFormat
from hotprefix.tune.kv_bytes import KvShape
from hotprefix.tune.machine import Processor


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """`weights` is the size of the weights' file in bytes, `context` the model's own in tokens."""

    name: str
    shape: KvShape
    context: int
    weights: int


def read_model(manifest: ModelManifest, processor: Processor) -> ModelFacts:
    """Compile a model once to see what it keeps. Raises `ModelError`."""
    core = ov.Core()
    settings = EngineSettings(kv_precision=processor.sixteen_bit)
    graph = read_paged_model(core, manifest.graph, manifest.ropes)
    return model_facts(manifest, kv_format(*compile_network(core, graph, settings)))


def model_facts(manifest: ModelManifest, kv: KvFormat) -> ModelFacts:
    """The facts of a model whose KV format, of floats, is known.

    Heads and their size are those of a layer on average.
    """
    layers = {layer_of(cache.name)[1] for cache in kv.inputs}
    values = [cache.block_shape for cache in kv.inputs if not layer_of(cache.name)[0]]
    heads = round(sum(shape[0] for shape in values) / len(values))
    size = round(sum(shape[2] for shape in values) / len(values))
    weights = manifest.graph.with_suffix(".bin").stat().st_size
    return ModelFacts(manifest.name, KvShape(len(layers), heads, size), manifest.context_length, weights)


def read_processor() -> Processor:
    """The processor as OpenVINO sees it."""
    core = ov.Core()
    return Processor(
        name=str(core.get_property("CPU", "FULL_DEVICE_NAME")).strip(),
        computes_in=computing_type(core),
        capabilities=tuple(str(one) for one in core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")),
    )
