"""GGUF files: read, refused, and never a crash."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from hotprefix.base.errors import BrokenModelFile, ModelError, UnsupportedModel
from hotprefix.models.gguf_file import check_convertible, head_size, read_gguf
from tests.tiny_gguf import Shape, write_tiny_gguf

Q = gguf.GGMLQuantizationType


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(
        tmp_path_factory.mktemp("gguf") / "tiny.gguf", shape=Shape(hidden=64, layers=1, ffn=64)
    )


def _with_metadata(source: Path, target: Path, changes: dict[str, Any]) -> Path:
    """A copy of `source` with metadata added, replaced or (None) dropped."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "llama")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture" or name in changes:
            continue
        kind = field.types[0]
        writer.add_key_value(name, field.contents(), kind, field.types[-1] if len(field.types) > 1 else None)
    for name, value in changes.items():
        if name == "general.architecture":
            writer.kv_data[0][name].value = value
        elif isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif value is not None:
            writer.add_string(name, value)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.array(tensor.data), raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def test_reads_metadata_and_tensors(tiny: Path) -> None:
    file = read_gguf(tiny)
    assert file.architecture == "llama"
    assert file.of_family("context_length") == 2048
    assert head_size(file) == 64
    assert file.items("tokenizer.ggml.tokens")[:2] == ["<|endoftext|>", "<|im_start|>"]
    assert file.items("tokenizer.ggml.token_type")[:4] == [3, 3, 3, 1]
    assert file.flag("tokenizer.ggml.add_bos_token", True) is False
    assert file.tensors["blk.0.attn_q.weight"].shape == (64, 128)
    check_convertible(file)


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize("quant", [Q.F16, Q.Q8_0, Q.Q4_0, Q.Q4_1])
def test_served_families_and_types(tmp_path: Path, family: str, quant: Q) -> None:
    check_convertible(read_gguf(write_tiny_gguf(tmp_path / "m.gguf", family, quant=quant)))


@pytest.mark.parametrize("quant", [Q.F32, Q.BF16, Q.Q5_0])
def test_other_types_are_refused_by_name(tmp_path: Path, quant: Q) -> None:
    with pytest.raises(UnsupportedModel, match=rf"is {quant.name}; the converter reads F16, Q8_0"):
        check_convertible(read_gguf(write_tiny_gguf(tmp_path / "m.gguf", quant=quant)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"general.architecture": "mamba"}, r"architecture 'mamba'; served are llama, qwen2, qwen3"),
        ({"split.count": 3}, "llama-gguf-split --merge"),
        ({"llama.expert_count": 8}, "mixture of experts"),
        ({"llama.rope.dimension_count": 32}, "rotates 32 of 64"),
        ({"general.file_type": None}, "file_type"),
        ({"general.file_type": 7}, None),
    ],
)
def test_models_that_the_converter_would_get_wrong(
    tiny: Path, tmp_path: Path, changes: dict[str, Any], words: str | None
) -> None:
    file = read_gguf(_with_metadata(tiny, tmp_path / "m.gguf", changes))
    if words is None:
        check_convertible(file)
    else:
        with pytest.raises(UnsupportedModel, match=words):
            check_convertible(file)


def test_quantised_tensors_in_a_file_that_says_f16(tmp_path: Path) -> None:
    quantised = write_tiny_gguf(tmp_path / "q.gguf", quant=Q.Q8_0)
    lying = _with_metadata(quantised, tmp_path / "m.gguf", {"general.file_type": 1})
    with pytest.raises(UnsupportedModel, match="says F32 or F16"):
        check_convertible(read_gguf(lying))


@pytest.mark.parametrize(
    "changes", [{"llama.block_count": None}, {"llama.block_count": 2}, {"llama.embedding_length": "x"}]
)
def test_missing_parts_are_broken(tiny: Path, tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(BrokenModelFile):
        check_convertible(read_gguf(_with_metadata(tiny, tmp_path / "m.gguf", changes)))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a GGUF file"),
        (b"GGU", "not a GGUF file"),
        (b"\x80\x02pickle", "not a GGUF file"),
        (b"GGUF\x03\x00", "truncated"),
        (b"GGUF\x03\x00\x00\x00", "truncated"),
    ],
)
def test_files_that_are_no_model(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(BrokenModelFile, match=words):
        read_gguf(tmp_path / "m.gguf")


def test_versions_and_byte_orders_that_are_not_read(tmp_path: Path) -> None:
    for head, words in ((b"GGUF\x01\0\0\0", "version 1"), (b"GGUF\0\0\0\x03", "big-endian")):
        (tmp_path / "m.gguf").write_bytes(head + bytes(64))
        with pytest.raises(UnsupportedModel, match=words):
            read_gguf(tmp_path / "m.gguf")


def test_folders_and_missing_files(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.gguf"):
        with pytest.raises(BrokenModelFile, match="can't be read"):
            read_gguf(path)


def test_every_truncation_is_noticed(tiny: Path, tmp_path: Path) -> None:
    content = tiny.read_bytes()
    draw = random.Random(3)
    lengths = [*range(0, 64), *(draw.randrange(64, len(content)) for _ in range(60)), len(content) - 1]
    for length in lengths:
        (tmp_path / "m.gguf").write_bytes(content[:length])
        with pytest.raises(BrokenModelFile, match=r"truncated|not a GGUF|corrupt|no tensors"):
            read_gguf(tmp_path / "m.gguf")


def test_flipped_bytes_never_crash(tiny: Path, tmp_path: Path) -> None:
    content = tiny.read_bytes()
    header = 9_000
    draw = random.Random(5)
    outcomes = set()
    for _ in range(250):
        broken = bytearray(content)
        for _ in range(draw.randrange(1, 4)):
            broken[draw.randrange(header)] = draw.randrange(256)
        (tmp_path / "m.gguf").write_bytes(broken)
        try:
            check_convertible(read_gguf(tmp_path / "m.gguf"))
            outcomes.add("read")
        except ModelError as error:
            assert str(tmp_path / "m.gguf") in str(error)
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_a_corrupt_length_is_refused_at_once(tiny: Path, tmp_path: Path) -> None:
    content = bytearray(tiny.read_bytes())
    # The array of token types: name, kind of value, kind of entry, then its length.
    at = content.index(b"tokenizer.ggml.token_type") + len(b"tokenizer.ggml.token_type") + 8
    content[at : at + 8] = (1 << 60).to_bytes(8, "little")
    (tmp_path / "m.gguf").write_bytes(content)
    with pytest.raises(BrokenModelFile, match="claims 1152921504606846976 entries"):
        read_gguf(tmp_path / "m.gguf")
