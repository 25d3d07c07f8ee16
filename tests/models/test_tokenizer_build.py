"""GGUF tokenizers become the tokenizers their models were trained with."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from hotprefix.base.errors import BrokenModelFile, UnsupportedModel
from hotprefix.models.gguf_file import GgufFile, read_gguf
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.tokenizer_build import add_bos, build_tokenizer, end_ids, token_text
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from tests.tiny_gguf import MERGES, tiny_vocabulary, write_tiny_spm_gguf


def _file(**changes: Any) -> GgufFile:
    tokens, types = tiny_vocabulary()
    metadata = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.merges": list(MERGES),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
    }
    metadata |= {f"tokenizer.ggml.{key}": value for key, value in changes.items()}
    return GgufFile(Path("m.gguf"), MappingProxyType(metadata), {})


def _pieces(pre: str, text: str) -> list[str]:
    tokenizer = build_tokenizer(_file(pre=pre))
    assert tokenizer.pre_tokenizer is not None
    return [text[start:end] for _, (start, end) in tokenizer.pre_tokenizer.pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("pre", "text", "pieces"),
    [
        ("smollm", "I'll pay 1234 now", ["I", "'ll", " pay", " ", "1", "2", "3", "4", " now"]),
        ("gpt-2", "I'll pay 1234  now", ["I", "'ll", " pay", " 1234", " ", " now"]),
        ("default", "WE'RE", ["WE", "'", "RE"]),
        ("qwen2", "WE'RE 12\n\n x=1", ["WE", "'RE", " ", "1", "2", "\n\n", " x", "=", "1"]),
        ("llama-bpe", "pay 12345 (now)\n", ["pay", " ", "123", "45", " (", "now", ")\n"]),
    ],
)
def test_text_is_cut_as_the_family_cuts_it(pre: str, text: str, pieces: list[str]) -> None:
    assert _pieces(pre, text) == pieces


def test_qwen_composes_characters_and_smollm_does_not() -> None:
    composed, decomposed = "é", "e\u0301"
    qwen, smollm = build_tokenizer(_file(pre="qwen2")), build_tokenizer(_file())
    assert qwen.encode(decomposed).ids == qwen.encode(composed).ids
    assert smollm.encode(decomposed).ids != smollm.encode(composed).ids


def test_control_tokens_are_special_and_user_defined_are_not() -> None:
    tokens, types = tiny_vocabulary()
    file = _file(tokens=[*tokens, "<tool_call>"], token_type=[*types, 4])
    tokenizer = build_tokenizer(file)
    ids = tokenizer.encode("<|im_start|>a<tool_call>").ids
    assert (ids[0], ids[-1]) == (1, len(tokens))
    assert tokenizer.decode(ids, skip_special_tokens=True) == "a<tool_call>"


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"pre": "tekken"}, UnsupportedModel, "pre-tokenizer 'tekken' is not known"),
        ({"model": "bert"}, UnsupportedModel, "tokenizer 'bert' is not served"),
        ({"tokens": []}, BrokenModelFile, "token list"),
        ({"token_type": [1]}, BrokenModelFile, "token types"),
        ({"tokens": ["a"] * 287}, BrokenModelFile, "twice"),
        ({"merges": ["no-space"]}, BrokenModelFile, "merge"),
        ({"merges": ["q zzz"]}, BrokenModelFile, "not in the vocabulary"),
        ({"model": "llama"}, BrokenModelFile, "scores"),
        ({"tokens": "text"}, BrokenModelFile, "not of type list"),
    ],
)
def test_refusals(changes: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        build_tokenizer(_file(**changes))


def test_end_tokens() -> None:
    assert end_ids(_file()) == (2, 0)
    assert end_ids(_file(eos_token_id=0, eot_token_id=5)) == (0, 5, 2)
    assert end_ids(_file(eos_token_id=10**6)) == (0, 2)
    types = tiny_vocabulary()[1]
    assert end_ids(_file(token_type=[1, *types[1:]])) == (2,)  # only control tokens count


def test_bos_is_added_where_the_family_wants_it() -> None:
    assert not add_bos(_file())
    assert add_bos(_file(add_bos_token=True))
    assert add_bos(_file(pre="llama-bpe"))
    assert not add_bos(_file(pre="llama-bpe", add_bos_token=False))
    assert not add_bos(_file(add_bos_token=True, bos_token_id=None))
    assert token_text(_file(), "bos") == "<|im_start|>"


def test_sentence_piece_merges_by_score_and_falls_back_to_bytes(tmp_path: Path) -> None:
    file = read_gguf(write_tiny_spm_gguf(tmp_path / "m.gguf"))
    tokenizer = build_tokenizer(file)
    assert tokenizer.encode("hello the").tokens == ["▁hello", "▁the"]
    assert tokenizer.encode("é").tokens == ["▁", "<0xC3>", "<0xA9>"]
    assert tokenizer.encode("<s>a").ids[0] == 1
    assert add_bos(file)
    assert end_ids(file) == (2,)


TEXTS = (
    "Hello world, I'll can't WE'RE",
    "你好，世界！😀👨‍👩‍👧 東京タワー 안녕",
    "def f(x):\n    return x**2  # 12345 678\n\tif x:\n\n\n\n        pass",
    "<|im_start|>user\nhi <file_sep>there<|im_end|>\n",
    " a  b   c\n\n d\t\te  ",
    "１２３ ٣٤ 3.14159 ¼ ½ e\u0301",
    "https://example.org/?q=1&x=%20#frag \u00a0\u2003 end",
)


@pytest.mark.model
@pytest.mark.parametrize("text", TEXTS)
def test_default_model_agrees_with_the_openvino_tokenizer(default_model: ModelManifest, text: str) -> None:
    import openvino_genai

    theirs = openvino_genai.Tokenizer(str(default_model.folder))
    ours = HfTokenizer(default_model.tokenizer)
    ids = ours.encode(text)
    assert ids == theirs.encode(text, add_special_tokens=False).input_ids.data[0].tolist()
    assert b"".join(map(ours.token_bytes, ids)) == text.encode()


@pytest.mark.model
def test_default_model_facts(default_model: ModelManifest) -> None:
    tokenizer = HfTokenizer(default_model.tokenizer)
    assert tokenizer.vocab_size == 49_152
    assert tokenizer.encode("<|endoftext|><|im_start|><|im_end|>") == [0, 1, 2]
    assert tokenizer.encode("Hello world") == [19556, 905]
    assert default_model.eos_ids == (2, 0)
    assert default_model.context_length == 8192
