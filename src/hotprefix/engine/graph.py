"""A stateful decoder, rewritten to read and write KV blocks through block tables.

Source of the operator's contract: OpenVINO's `paged_attention_transformation`. After it, inputs
are flat over all sequences of a step; see `Runner` for their shapes.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino.opset13 as op
from openvino._offline_transformations import paged_attention_transformation

from hotprefix.base.errors import BrokenModelFile, UnsupportedModel
from hotprefix.models.rope import Rope
from hotprefix.models.rope_graph import settle_rope
from hotprefix.pages.format import CacheInput, KvFormat

SAMPLE_INPUT = "sample_idx"
LOOK_BACK_INPUT = "score_aggregation_window"
"""How many of each row's last tokens count in the attention that is told; see `Told`."""
ATTENTION_OUTPUT = "scores."
"""Name of the attention of a layer, followed by its number."""
HIDDEN_INPUT = "hidden_states"
"""What the second part of a cut network begins with; see `stages`."""
KNOWN_INPUTS = frozenset(
    {
        "input_ids",
        "position_ids",
        "past_lens",
        "subsequence_begins",
        "block_indices",
        "block_indices_begins",
        "max_context_len",
        SAMPLE_INPUT,
        HIDDEN_INPUT,
        LOOK_BACK_INPUT,
    }
)


class Told(Enum):
    """What a paged model tells: the logits, or also the attention that each cached token got."""

    LOGITS = False
    ATTENTION = True


def read_paged_model(
    core: ov.Core, graph: Path, ropes: Sequence[Rope] = (), told: Told = Told.LOGITS
) -> ov.Model:
    """Read an IR and rewrite it; it turns positions as `ropes` say, if they say anything.

    Raises `BrokenModelFile` or `UnsupportedModel`.
    """
    try:
        model = core.read_model(graph)
    except RuntimeError as error:
        raise BrokenModelFile(f"{graph} can't be read: {_first_line(error)}") from error
    settle_rope(core, model, ropes, str(graph))
    try:
        attention = told is Told.ATTENTION
        paged_attention_transformation(model, False, attention, attention, False)
        _gather_before_output_matrix(model)
    except RuntimeError as error:
        raise UnsupportedModel(
            f"{graph} is no decoder that can be served with paged attention: {_first_line(error)}"
        ) from error
    return model


def compile_paged_model(
    core: ov.Core, model: ov.Model, kv_precision: str, threads: int | None
) -> ov.CompiledModel:
    """Compile for the CPU. `auto` keeps KV in the precision that the processor computes in."""
    if kv_precision == "auto":
        kv_precision = computing_type(core)
    config: dict[str, Any] = {"KV_CACHE_PRECISION": kv_precision, "PERFORMANCE_HINT": "LATENCY"}
    if kv_precision == "f32":
        # The attention kernel wants its KV in the precision that it computes in.
        config["INFERENCE_PRECISION_HINT"] = "f32"
    if threads is not None:
        config["INFERENCE_NUM_THREADS"] = threads
    try:
        compiled = core.compile_model(model, "CPU", config)
    except RuntimeError as error:
        raise UnsupportedModel(
            f"the model does not compile with KV precision {kv_precision}: {_first_line(error)}"
        ) from error
    unknown = {port.get_any_name() for port in compiled.inputs if "cache." not in port.get_any_name()}
    if unknown - KNOWN_INPUTS:
        raise UnsupportedModel(f"the model wants inputs that are not known: {sorted(unknown - KNOWN_INPUTS)}")
    return compiled


def computing_type(core: ov.Core) -> str:
    """The type that the processor computes in: `bf16`, `f16` or `f32`."""
    computed = core.get_property("CPU", "INFERENCE_PRECISION_HINT")
    name = str(computed.to_string() if hasattr(computed, "to_string") else computed)
    return {"bf16": "bf16", "bfloat16": "bf16", "f16": "f16", "float16": "f16"}.get(name, "f32")


def kv_format(*parts: ov.CompiledModel) -> KvFormat:
    """The cache tensors of a compiled network, in the order of its parts.

    Block size is the token axis of the values.
    """
    inputs = []
    block_size = 0
    for port in (port for part in parts for port in part.inputs):
        name = port.get_any_name()
        if "cache." not in name:
            continue
        shape = tuple(axis.get_length() for axis in list(port.get_partial_shape())[1:])
        kind = port.get_element_type()
        inputs.append(CacheInput(name, kind.get_type_name(), kind.bitwidth, shape))
        if name.startswith("value_cache"):
            block_size = shape[1]
    if not inputs or not block_size:
        raise UnsupportedModel("the compiled model has no KV cache inputs")
    return KvFormat(block_size, tuple(inputs))


def _gather_before_output_matrix(model: ov.Model) -> None:
    """Compute logits only for the rows that `sample_idx` [i64, rows] names.

    Without it every prompt token pays for the output matrix: a third of a small model's prefill.
    """
    node = model.get_results()[0].input_value(0).get_node()
    while node.get_type_name() != "MatMul":
        if not node.get_input_size():
            raise RuntimeError("no output matrix before the logits")
        node = node.input_value(0).get_node()
    rows = op.parameter([-1], np.int64, name=SAMPLE_INPUT)
    rows.output(0).set_names({SAMPLE_INPUT})
    axis = op.constant(0)
    node.input(0).replace_source_output(op.gather(node.input_value(0), rows, axis).output(0))
    model.add_parameters([rows])
    model.validate_nodes_and_infer_types()


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
