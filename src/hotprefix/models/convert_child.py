"""Runs inside its own process: one conversion, so that a crash in native code harms nothing else.

`python -m hotprefix.models.convert_child gguf MODEL.gguf STUB.gguf ROPE` writes the OpenVINO IR
beside MODEL.gguf; STUB.gguf lends its tokenizer where OpenVINO GenAI can't read the model's own, and
is '' otherwise; ROPE is JSON with the rotary `base` and `factors`. `... hf FOLDER OUT` exports a
Hugging Face folder. `... check GRAPH` only loads an IR.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

_INPUTS = {"input_ids", "attention_mask", "position_ids", "beam_idx"}


def convert_gguf(model: Path, stub: str, base: float, factors: list[float]) -> None:
    """Write `openvino_model.xml/.bin` beside `model`."""
    import openvino_genai

    if stub:
        tokenizer = openvino_genai.Tokenizer(stub)
        openvino_genai.LLMPipeline(str(model), tokenizer, "CPU", enable_save_ov_model=True)
    else:
        openvino_genai.LLMPipeline(str(model), "CPU", enable_save_ov_model=True)
    graph = model.parent / "openvino_model.xml"
    set_rope_table(graph, base, factors)
    check_graph(graph)


def convert_hugging_face(folder: str, out: str) -> None:
    """Export a transformers folder as it is (16-bit weights) with its tokenizer files."""
    from optimum.exporters.openvino import main_export
    from optimum.intel import OVConfig

    # Without a stated type the exporter compresses large models to 8 bits.
    main_export(
        folder,
        out,
        task="text-generation-with-past",
        library_name="transformers",
        local_files_only=True,
        ov_config=OVConfig(dtype="fp16"),
    )
    check_graph(Path(out) / "openvino_model.xml")


def check_graph(graph: Path) -> None:
    """Load the IR and see that it has the inputs and output the engine drives."""
    import openvino

    model = openvino.Core().read_model(graph)
    inputs = {name for port in model.inputs for name in port.get_names()}
    if missing := _INPUTS - inputs:
        raise SystemExit(
            f"the graph lacks the inputs {', '.join(sorted(missing))}: it is no stateful text model"
        )
    if "logits" not in {name for port in model.outputs for name in port.get_names()}:
        raise SystemExit("the graph lacks the output 'logits'")


def set_rope_table(graph: Path, base: float, factors: list[float]) -> None:
    """Write the rotary frequencies `base ** (-i / n) / factors[i]` into the graph, in 32 bits.

    The converter ignores the file's factors (Llama 3.1 and later), and rounds the table to 16
    bits for F16 models, which turns far positions by whole radians.
    """
    import numpy as np
    import openvino
    from openvino import opset13

    model = openvino.Core().read_model(graph)
    tables = [node for node in model.get_ordered_ops() if _is_rope_table(node)]
    if len(tables) != 1:
        raise SystemExit(f"expected one table of rotary frequencies, found {len(tables)}")
    (table,) = tables
    half = table.get_output_partial_shape(0).to_shape()[1]
    exact = table.get_type_name() == "Constant" and table.get_element_type() == openvino.Type.f32
    if exact and not factors:
        return
    if factors and len(factors) != half:
        raise SystemExit(f"{len(factors)} rotary factors do not fit {half} frequencies")
    values = base ** (-np.arange(half) / half) / np.asarray(factors or [1.0] * half)
    constant = opset13.constant(values.astype(np.float32).reshape(1, half, 1))
    for use in table.output(0).get_target_inputs():
        use.replace_source_output(constant.output(0))
    openvino.save_model(model, graph.with_name("exact.xml"), compress_to_fp16=False)
    graph.with_name("exact.bin").replace(graph.with_suffix(".bin"))
    graph.with_name("exact.xml").replace(graph)


def _is_rope_table(node: Any) -> bool:
    """A constant of shape [1, n, 1], maybe converted from 16 bits, that is broadcast and multiplied."""
    source = node.input_value(0).get_node() if node.get_type_name() == "Convert" else node
    if source.get_type_name() != "Constant" or [*source.shape][::2] != [1, 1] or len(source.shape) != 3:
        return False
    uses = [use.get_node() for use in node.output(0).get_target_inputs()]
    return any(
        use.get_type_name() == "Broadcast"
        and any(after.get_node().get_type_name() == "MatMul" for after in use.output(0).get_target_inputs())
        for use in uses
    )


def main(arguments: list[str]) -> None:
    """Dispatch on the first argument."""
    match arguments:
        case ["gguf", model, stub, rope]:
            convert_gguf(Path(model), stub, **json.loads(rope))
        case ["hf", folder, out]:
            convert_hugging_face(folder, out)
        case ["check", graph]:
            check_graph(Path(graph))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
