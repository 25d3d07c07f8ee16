"""Tokenizers of the kinds that models bring."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotprefix.models.gguf_file import read_gguf
from hotprefix.models.tokenizer_build import build_tokenizer
from tests.tiny_gguf import write_tiny_gguf, write_tiny_spm_gguf


@pytest.fixture(scope="session")
def byte_level_json(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tokenizer.json` of a byte-level BPE with three special tokens."""
    return _built(write_tiny_gguf(tmp_path_factory.mktemp("tok") / "tiny.gguf"))


@pytest.fixture(scope="session")
def sentence_piece_json(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`tokenizer.json` of a SentencePiece BPE with byte fallback."""
    return _built(write_tiny_spm_gguf(tmp_path_factory.mktemp("tok") / "spm.gguf"))


def _built(model: Path) -> Path:
    path = model.with_name("tokenizer.json")
    build_tokenizer(read_gguf(model)).save(str(path))
    return path
