"""Model files → OpenVINO IR, once, in a process of its own."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import gguf

from hotprefix.base.errors import BrokenModelFile, MissingExtra, UnsupportedModel
from hotprefix.models.gguf_file import GgufFile
from hotprefix.models.rope import Rope
from hotprefix.models.rope_config import gguf_rope

_TAIL_LINES = 12
_GENAI_PRE_TOKENIZERS = ("qwen2", "smollm", "llama-bpe", "default", "gpt-2")


def convert_gguf(file: GgufFile, out: Path) -> None:
    """Write `openvino_model.xml/.bin` of a checked GGUF file into the empty folder `out`.

    The source folder is only read. Raises `UnsupportedModel` with the converter's own words.
    """
    link = out / "model.gguf"
    link.symlink_to(file.path.resolve())
    stub = "" if _genai_reads_tokenizer(file) else str(_write_stub(out / "stub.gguf"))
    ropes = _ropes_text([gguf_rope(file)])
    _run_child(["gguf", str(link), stub, ropes], f"{file.path} could not be converted")
    link.unlink()
    (out / "stub.gguf").unlink(missing_ok=True)


def convert_hugging_face(folder: Path, out: Path) -> None:
    """Export a Hugging Face folder into `out`; needs the `hf` extra, else `MissingExtra`."""
    if importlib.util.find_spec("optimum") is None or importlib.util.find_spec("transformers") is None:
        raise MissingExtra(
            f"{folder} is a Hugging Face model; to export it, install the extra: pip install 'hotprefix[hf]'"
        )
    _run_child(["hf", str(folder.resolve()), str(out)], f"{folder} could not be exported")


def check_graph(graph: Path, ropes: Sequence[Rope] = ()) -> None:
    """Load an IR in a process of its own; `BrokenModelFile` if that fails.

    So it does if the graph turns positions neither as one of `ropes` nor in a way that can be put right.
    """
    try:
        _run_child(["check", str(graph), _ropes_text(ropes)], f"{graph} can't be served")
    except UnsupportedModel as error:
        raise BrokenModelFile(str(error)) from error


def _ropes_text(ropes: Sequence[Rope]) -> str:
    return json.dumps([asdict(rope) for rope in ropes])


def _genai_reads_tokenizer(file: GgufFile) -> bool:
    pre = file.text("tokenizer.ggml.pre")
    return file.text("tokenizer.ggml.model") == "gpt2" and pre in _GENAI_PRE_TOKENIZERS


def _write_stub(path: Path) -> Path:
    """A GGUF with a vocabulary that OpenVINO GenAI reads; its pipeline insists on a tokenizer."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(["<|end|>", "a", "b", "ab"])
    writer.add_token_types([int(gguf.TokenType.CONTROL), *[int(gguf.TokenType.NORMAL)] * 3])
    writer.add_token_merges(["a b"])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_pad_token_id):
        add(0)
    writer.add_unk_token_id(0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _run_child(arguments: list[str], complaint: str) -> None:
    command = [sys.executable, "-m", "hotprefix.models.convert_child", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, errors="replace", check=False, stdin=subprocess.DEVNULL
    )
    if done.returncode == 0:
        return
    if done.returncode < 0:
        ended = f"the converter was ended by {signal.Signals(-done.returncode).name}"
        if done.returncode == -signal.SIGKILL:
            ended += " (most often: out of memory)"
    else:
        ended = f"the converter ended with status {done.returncode}"
    tail = "\n".join(line for line in done.stderr.splitlines() if line.strip()).splitlines()[-_TAIL_LINES:]
    raise UnsupportedModel("\n  ".join([f"{complaint}: {ended}.", *tail]))
