"""Real conversions of tiny models: the graph computes what the file says."""

from __future__ import annotations

import importlib.util
import json
import stat
from pathlib import Path

import gguf
import numpy as np
import openvino
import pytest

from hotprefix.base.errors import BrokenModelFile, MissingExtra, UnsupportedModel
from hotprefix.models.convert import check_graph, convert_gguf, convert_hugging_face
from hotprefix.models.gguf_file import read_gguf
from tests.models.reference import logits
from tests.tiny_gguf import Shape, write_tiny_gguf, write_tiny_spm_gguf

IDS = [1, 40, 77, 200, 13, 260, 8]


def _run(folder: Path, ids: list[int]) -> np.ndarray:
    core = openvino.Core()
    hints = {
        "INFERENCE_PRECISION_HINT": "f32",
        "KV_CACHE_PRECISION": "f16",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    }
    model = core.compile_model(core.read_model(folder / "openvino_model.xml"), "CPU", hints)
    count = len(ids)
    feed = {"input_ids": [ids], "attention_mask": [[1] * count], "position_ids": [list(range(count))]}
    arrays = {name: np.array(value, dtype=np.int64) for name, value in feed.items()}
    return np.array(
        model.create_infer_request().infer(arrays | {"beam_idx": np.zeros(1, np.int32)})["logits"]
    )[0]


def _converted(model: Path, out: Path) -> Path:
    out.mkdir()
    convert_gguf(read_gguf(model), out)
    return out


@pytest.mark.parametrize(
    ("family", "shape"),
    [
        ("llama", Shape()),
        ("llama", Shape(hidden=64, heads=4, kv_heads=2, head_dim=16, layers=1)),
        ("qwen2", Shape()),
        ("qwen3", Shape(hidden=64)),
    ],
)
def test_the_graph_computes_the_model(tmp_path: Path, family: str, shape: Shape) -> None:
    model = write_tiny_gguf(tmp_path / "m.gguf", family, shape=shape)
    ours, theirs = _run(_converted(model, tmp_path / "ir"), IDS), logits(model, IDS, shape)
    assert np.abs(ours - theirs).max() < 0.02 * theirs.std()
    assert (ours.argmax(-1) == theirs.argmax(-1)).all()


def test_far_positions_are_exact(tmp_path: Path) -> None:
    shape, ids = Shape(layers=1), IDS * 100
    model = write_tiny_gguf(tmp_path / "m.gguf", shape=shape)
    ours, theirs = _run(_converted(model, tmp_path / "ir"), ids), logits(model, ids, shape)
    assert np.abs(ours - theirs).max() < 0.02 * theirs.std()


def test_rope_factors_are_applied(tmp_path: Path) -> None:
    factors = np.linspace(1.0, 32.0, 32)
    model = write_tiny_gguf(tmp_path / "m.gguf", rope_factors=factors)
    plain = write_tiny_gguf(tmp_path / "plain.gguf")
    ours, theirs = _run(_converted(model, tmp_path / "ir"), IDS), logits(model, IDS, Shape())
    assert np.abs(ours - theirs).max() < 0.02 * theirs.std()
    assert np.abs(theirs - logits(plain, IDS, Shape())).max() > 0.1 * theirs.std()


@pytest.mark.parametrize("family", ["llama", "qwen2"])
@pytest.mark.parametrize("kind", ["linear", "yarn"])
def test_scaling_that_the_converter_ignores_is_applied(tmp_path: Path, family: str, kind: str) -> None:
    scaling = {"rope.scaling.type": kind, "rope.scaling.factor": 8.0}
    scaling |= {"rope.scaling.original_context_length": 256}
    model = write_tiny_gguf(tmp_path / "m.gguf", family, more=scaling)
    half = 10_000.0 ** (-np.arange(32) / 32)
    if kind == "linear":
        frequencies, factor = half / 8, 1.0
    else:
        # Turns within 256 tokens at which YaRN starts and stops to divide, as whole pairs.
        fast, slow = (64 * np.log(256 / (turns * 2 * np.pi)) / (2 * np.log(10_000.0)) for turns in (32, 1))
        share = np.clip(
            (np.arange(32) - max(np.floor(fast), 0)) / (np.ceil(slow) - max(np.floor(fast), 0)), 0, 1
        )
        frequencies, factor = half * (1 - share) + half / 8 * share, 0.1 * np.log(8.0) + 1
    ids = IDS * 40
    ours = _run(_converted(model, tmp_path / "ir"), ids)
    theirs = logits(model, ids, Shape(), frequencies, factor)
    assert np.abs(ours - theirs).max() < 0.02 * theirs.std()
    assert np.abs(theirs - logits(model, ids, Shape())).max() > 0.1 * theirs.std()


def test_only_the_graph_is_left_and_the_source_folder_is_not_touched(tmp_path: Path) -> None:
    source = tmp_path / "read-only"
    source.mkdir()
    model = write_tiny_gguf(source / "m.gguf")
    source.chmod(stat.S_IRUSR | stat.S_IXUSR)
    out = _converted(model, tmp_path / "ir")
    assert {"openvino_model.xml", "openvino_model.bin"} <= {path.name for path in out.iterdir()}
    assert not list(out.glob("*.gguf"))
    assert [path.name for path in source.iterdir()] == ["m.gguf"]


@pytest.mark.parametrize("pre", ["stablelm2", None])
def test_tokenizers_that_openvino_genai_does_not_read(tmp_path: Path, pre: str | None) -> None:
    model = tmp_path / "m.gguf"
    if pre is None:
        write_tiny_spm_gguf(model)
    else:
        write_tiny_gguf(model, pre=pre)
    out = _converted(model, tmp_path / "ir")
    assert np.abs(_run(out, IDS) - logits(model, IDS, Shape())).max() < 0.1
    assert not list(out.glob("*.gguf"))


def test_a_failed_conversion_says_what_the_converter_said(tmp_path: Path) -> None:
    model = write_tiny_gguf(tmp_path / "m.gguf", quant=gguf.GGMLQuantizationType.BF16)
    with pytest.raises(
        UnsupportedModel, match=r"m\.gguf could not be converted[\s\S]*Unsupported quantization type"
    ):
        _converted(model, tmp_path / "ir")


def test_graphs_that_cannot_be_served(tmp_path: Path) -> None:
    (tmp_path / "openvino_model.xml").write_text("<net")
    with pytest.raises(BrokenModelFile, match="can't be served"):
        check_graph(tmp_path / "openvino_model.xml")
    parameter = openvino.opset13.parameter([1], np.float32, name="x")
    openvino.save_model(openvino.Model([parameter], [parameter], "m"), tmp_path / "other.xml")
    with pytest.raises(BrokenModelFile, match="lacks the inputs"):
        check_graph(tmp_path / "other.xml")


HAS_EXTRA = importlib.util.find_spec("optimum") is not None


@pytest.mark.slow
@pytest.mark.skipif(not HAS_EXTRA, reason="needs the extra: hotprefix[hf]")
@pytest.mark.filterwarnings("ignore")
def test_hugging_face_folders_are_exported_as_they_are(tmp_path: Path) -> None:
    import torch
    import transformers

    from hotprefix.models.store import ModelStore
    from hotprefix.models.tokenizer_build import build_tokenizer

    library = build_tokenizer(read_gguf(write_tiny_gguf(tmp_path / "t.gguf")))
    specials = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "chat_template": "{{ 1 }}"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=library, **specials).save_pretrained(
        tmp_path / "hf"
    )
    sizes = {
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "max_position_embeddings": 1024,
    }
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "bos_token_id": 1, "eos_token_id": 2}
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=287, **sizes, **heads)).half()
    model.save_pretrained(tmp_path / "hf")
    manifest = ModelStore(tmp_path / "store").resolve(str(tmp_path / "hf"))
    assert (manifest.family, manifest.context_length, manifest.eos_ids) == ("llama", 1024, (2,))
    assert manifest.chat_template == "{{ 1 }}"
    with torch.no_grad():
        theirs = model.float()(torch.tensor([IDS])).logits[0].numpy()
    assert np.abs(_run(manifest.folder, IDS) - theirs).max() < 0.02 * theirs.std()


@pytest.mark.skipif(HAS_EXTRA, reason="the extra is installed")
def test_hugging_face_folders_need_the_extra(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(MissingExtra, match=r"pip install 'hotprefix\[hf\]'"):
        convert_hugging_face(tmp_path, tmp_path / "out")
