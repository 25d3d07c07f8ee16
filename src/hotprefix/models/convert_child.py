"""Runs inside its own process: one conversion, so that a crash in native code harms nothing else.

`python -m hotprefix.models.convert_child gguf MODEL.gguf STUB.gguf` writes the OpenVINO IR beside
MODEL.gguf; STUB.gguf lends its tokenizer where OpenVINO GenAI can't read the model's own, and is ''
otherwise. `... hf FOLDER OUT` exports a Hugging Face folder. `... check GRAPH` only loads an IR.
"""

from __future__ import annotations

import sys
from pathlib import Path

_INPUTS = {"input_ids", "attention_mask", "position_ids", "beam_idx"}


def convert_gguf(model: Path, stub: str) -> None:
    """Write `openvino_model.xml/.bin` beside `model`."""
    import openvino_genai

    if stub:
        tokenizer = openvino_genai.Tokenizer(stub)
        openvino_genai.LLMPipeline(str(model), tokenizer, "CPU", enable_save_ov_model=True)
    else:
        openvino_genai.LLMPipeline(str(model), "CPU", enable_save_ov_model=True)
    graph = model.parent / "openvino_model.xml"
    apply_rope_factors(model, graph)
    check_graph(graph)


def convert_hugging_face(folder: str, out: str) -> None:
    """Export a transformers folder as it is (16-bit weights) with its tokenizer files."""
    from optimum.exporters.openvino import main_export

    main_export(
        folder, out, task="text-generation-with-past", library_name="transformers", local_files_only=True
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


def apply_rope_factors(source: Path, graph: Path) -> None:
    """Divide the graph's rotary frequencies by the file's `rope_freqs.weight` (Llama 3.1 and later).

    The converter ignores that tensor, which would blur long contexts.
    """
    import gguf
    import numpy as np
    import openvino
    from openvino import opset13

    found = [t for t in gguf.GGUFReader(source).tensors if t.name == "rope_freqs.weight"]
    if not found:
        return
    factors = np.asarray(found[0].data, dtype=np.float32).reshape(1, -1, 1)
    model = openvino.Core().read_model(graph)
    tables = [
        node
        for node in model.get_ordered_ops()
        if node.get_type_name() == "Constant"
        and list(node.shape) == list(factors.shape)
        and any(use.get_node().get_type_name() == "Broadcast" for use in node.output(0).get_target_inputs())
    ]
    if len(tables) != 1:
        raise SystemExit(f"expected one table of rotary frequencies, found {len(tables)}")
    scaled = opset13.constant((tables[0].data / factors).astype(np.float32))
    for use in tables[0].output(0).get_target_inputs():
        use.replace_source_output(scaled.output(0))
    openvino.save_model(model, graph.with_name("scaled.xml"), compress_to_fp16=False)
    # The graph still maps its weights file: drop it before the new pair takes its place.
    del model, tables, scaled, use
    graph.with_name("scaled.bin").replace(graph.with_suffix(".bin"))
    graph.with_name("scaled.xml").replace(graph)


def main(arguments: list[str]) -> None:
    """Dispatch on the first argument."""
    match arguments:
        case ["gguf", model, stub]:
            convert_gguf(Path(model), stub)
        case ["hf", folder, out]:
            convert_hugging_face(folder, out)
        case ["check", graph]:
            check_graph(Path(graph))
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
