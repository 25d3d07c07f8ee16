"""A decoder cut in two between layers, so that each part keeps its KV in a precision of its own.

OpenVINO compiles one KV precision a model (`KV_CACHE_PRECISION`), so two precisions take two models.
What flows between decoder layers is one tensor, the residual stream: the first part ends with it, the
second begins with it. What both need beside it (rotary angles, block tables) each computes or is given.
"""

from __future__ import annotations

from typing import Any

import openvino as ov
import openvino.opset13 as op

from hotprefix.base.errors import UnsupportedModel
from hotprefix.engine.graph import (
    HIDDEN_INPUT,
    compile_paged_model,
    computing_type,
    kv_format,
)
from hotprefix.engine.settings import EngineSettings
from hotprefix.models.graph_walk import ancestors, descendants

LAYERED = {"layered-u8": "u8", "layered-u4": "u4"}
"""`--kv-precision` of a cut network → precision of the deeper layers."""


def compile_network(core: ov.Core, model: ov.Model, settings: EngineSettings) -> tuple[ov.CompiledModel, ...]:
    """A paged model compiled as its KV precision asks for: whole, or in two parts.

    Raises `UnsupportedModel` if it does not compile or has too few layers to be cut.
    """
    deep = LAYERED.get(settings.kv_precision)
    if deep is None:
        return (compile_paged_model(core, model, settings.kv_precision, settings.threads),)
    # Processors without bf16 compute in f32, beside which f16 is the 16-bit type.
    shallow = "bf16" if computing_type(core) == "bf16" else "f16"
    parts = cut_model(model, settings.kv_16bit_layers)
    first, second = (
        compile_paged_model(core, part, precision, settings.threads)
        for part, precision in zip(parts, (shallow, deep), strict=True)
    )
    if kv_format(first).block_size != kv_format(second).block_size:
        raise UnsupportedModel(
            f"blocks of {shallow} and {deep} hold different numbers of tokens on this processor; "
            f"take --kv-precision {deep}"
        )
    return first, second


def cut_model(model: ov.Model, layers: int) -> tuple[ov.Model, ov.Model]:
    """`model` as two: its first `layers` decoder layers, and the rest. `model` is left as it is."""
    # The parts share the constants' memory.
    return _first_part(model.clone(), layers), _second_part(model.clone(), layers)


def _first_part(model: ov.Model, layers: int) -> ov.Model:
    residual = _residual_stream(model, layers)
    end = op.result(residual)
    later = descendants(model, [residual.get_node()])
    kept = [result for result in model.get_results() if result.get_name() not in later]
    return _with_needed_inputs([end, *kept], model, [])


def _second_part(model: ov.Model, layers: int) -> ov.Model:
    residual = _residual_stream(model, layers)
    later = descendants(model, [residual.get_node()])
    start = op.parameter(residual.get_partial_shape(), residual.get_element_type(), name=HIDDEN_INPUT)
    start.output(0).set_names({HIDDEN_INPUT})
    for use in residual.get_target_inputs():
        use.replace_source_output(start.output(0))
    kept = [result for result in model.get_results() if result.get_name() in later]
    return _with_needed_inputs(kept, model, [start])


def _residual_stream(model: ov.Model, layers: int) -> ov.Output[Any]:
    """The one tensor through which the first `layers` layers reach what follows them.

    Among the places where nothing else passes, the last one before the next layer's attention: it
    lies behind the feed-forward part and before the next norm.
    """
    ops = model.get_ordered_ops()
    place = {node.get_name(): index for index, node in enumerate(ops)}
    attentions = sorted((node for node in ops if _is_attention(node)), key=_layer)
    if not 0 < layers < len(attentions):
        raise UnsupportedModel(
            f"the model has {len(attentions)} layers: between 1 and {len(attentions) - 1} of them can stay "
            f"16-bit, not {layers} (--kv-16bit-layers)"
        )
    reached = descendants(model, attentions[:layers]) & ancestors([model.get_results()[0]])
    furthest = -1
    found: ov.Output[Any] | None = None
    for node in ops[: place[attentions[layers].get_name()]]:
        if node.get_name() not in reached:
            continue
        index = place[node.get_name()]
        uses = [use.get_node().get_name() for port in node.outputs() for use in port.get_target_inputs()]
        if furthest <= index and node.get_output_size() == 1:
            found = node.output(0)
        furthest = max([furthest, *(place[use] for use in uses if use in reached)])
    if found is None:
        raise UnsupportedModel(f"the model can't be cut behind layer {layers}: its layers share more")
    return found


def _with_needed_inputs(results: list[ov.Node], model: ov.Model, more: list[ov.op.Parameter]) -> ov.Model:
    needed = ancestors(results)
    inputs = [p for p in (*model.get_parameters(), *more) if p.get_name() in needed]
    return ov.Model(results, inputs, model.get_friendly_name())


def _is_attention(node: ov.Node) -> bool:
    return bool(node.get_type_name() == "PagedAttentionExtension")


def _layer(attention: ov.Node) -> int:
    names = (value.get_node().get_friendly_name() for value in attention.input_values())
    return next(int(name.removeprefix("key_cache.")) for name in names if name.startswith("key_cache."))
