"""Runs inside its own process: one conversion, so that a crash in native code harms nothing else.

`python -m hotprefix.models.convert_child gguf MODEL.gguf STUB.gguf ROPES` writes the OpenVINO IR
beside MODEL.gguf; STUB.gguf lends its tokenizer where OpenVINO GenAI can't read the model's own, and
is '' otherwise; ROPES is JSON, a list of rotary embeddings. `... hf FOLDER OUT` exports a Hugging Face
folder. `... check GRAPH ROPES` only loads an IR.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hotprefix.base.errors import ModelError
from hotprefix.models.rope import Rope, rope_from_json
from hotprefix.models.rope_graph import settle_rope

_INPUTS = {"input_ids", "attention_mask", "position_ids", "beam_idx"}


def convert_gguf(model: Path, stub: str, ropes: list[Rope]) -> None:
    """Write `openvino_model.xml/.bin` beside `model`."""
    import openvino_genai

    if stub:
        tokenizer = openvino_genai.Tokenizer(stub)
        openvino_genai.LLMPipeline(str(model), tokenizer, "CPU", enable_save_ov_model=True)
    else:
        openvino_genai.LLMPipeline(str(model), "CPU", enable_save_ov_model=True)
    graph = model.parent / "openvino_model.xml"
    set_rope(graph, ropes)
    check_graph(graph, ropes)


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
    check_graph(Path(out) / "openvino_model.xml", [])


def check_graph(graph: Path, ropes: list[Rope]) -> None:
    """Load the IR and see that it has the inputs and output the engine drives, and turns positions right."""
    import openvino

    core = openvino.Core()
    model = core.read_model(graph)
    inputs = {name for port in model.inputs for name in port.get_names()}
    if missing := _INPUTS - inputs:
        raise SystemExit(
            f"the graph lacks the inputs {', '.join(sorted(missing))}: it is no stateful text model"
        )
    if "logits" not in {name for port in model.outputs for name in port.get_names()}:
        raise SystemExit("the graph lacks the output 'logits'")
    settle_rope(core, model, ropes, graph.name)


def set_rope(graph: Path, ropes: list[Rope]) -> None:
    """Write the rotary frequencies and attention factor that the file asks for into the graph.

    The converter ignores the file's factors (Llama 3.1 and later) and scaling, and rounds the table
    to 16 bits for F16 models, which turns far positions by whole radians.
    """
    import openvino

    core = openvino.Core()
    model = core.read_model(graph)
    if not settle_rope(core, model, ropes, graph.name):
        return
    openvino.save_model(model, graph.with_name("exact.xml"), compress_to_fp16=False)
    graph.with_name("exact.bin").replace(graph.with_suffix(".bin"))
    graph.with_name("exact.xml").replace(graph)


def _ropes(text: str) -> list[Rope]:
    return [rope_from_json(found) for found in json.loads(text)]


def main(arguments: list[str]) -> None:
    """Dispatch on the first argument."""
    try:
        match arguments:
            case ["gguf", model, stub, ropes]:
                convert_gguf(Path(model), stub, _ropes(ropes))
            case ["hf", folder, out]:
                convert_hugging_face(folder, out)
            case ["check", graph, ropes]:
                check_graph(Path(graph), _ropes(ropes))
            case _:
                raise SystemExit(__doc__)
    except ModelError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main(sys.argv[1:])
