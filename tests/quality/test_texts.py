"""Texts, and how they are cut."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from hotprefix.base.errors import InvalidRequest
from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.quality.texts import Library, Part, Text, own_texts, texts_of


def test_python_brings_two_kinds_of_text() -> None:
    texts = own_texts()
    assert [text.domain for text in texts] == ["reference", "source"]
    assert all(len(text.text) > 200_000 for text in texts)
    assert "def " in texts[1].text


def test_halves_share_nothing() -> None:
    text = Text("x", "abcdefg")
    assert text.half(Part.LEARNED) + text.half(Part.MEASURED) == text.text


def test_documents_come_from_all_domains_in_turn_and_do_not_overlap(tiny_model: ModelManifest) -> None:
    tokenizer = HfTokenizer(tiny_model.tokenizer)
    texts = [Text(name, "".join(f"{name}{number} " for number in range(400))) for name in ("a", "b")]
    manifest = replace(tiny_model, add_bos=False)
    library = Library(texts, tokenizer, manifest)
    documents = library.documents(Part.MEASURED, 5, 64)
    assert [document.domain for document in documents] == ["a", "b", "a", "b", "a"]
    assert all(len(document.tokens) == 64 for document in documents)
    decoded = [tokenizer.decode(document.tokens) for document in documents if document.domain == "a"]
    half = texts[0].half(Part.MEASURED)
    places = [half.index(text) for text in decoded]
    assert all(
        start + len(text) <= end for (start, end), text in zip(pairwise(places), decoded, strict=False)
    )
    learned = library.documents(Part.LEARNED, 2, 64)
    assert tokenizer.decode(learned[0].tokens) not in half


def test_the_head_token_of_a_model_begins_each_document(tiny_model: ModelManifest) -> None:
    manifest = replace(tiny_model, add_bos=True, bos_id=1)
    library = Library(own_texts(), HfTokenizer(tiny_model.tokenizer), manifest)
    [document] = library.documents(Part.LEARNED, 1, 32)
    assert document.tokens[0] == 1
    assert len(document.tokens) == 32


def test_a_short_text_says_what_is_missing(tiny_model: ModelManifest) -> None:
    library = Library([Text("note.txt", "Hello.")], HfTokenizer(tiny_model.tokenizer), tiny_model)
    with pytest.raises(InvalidRequest, match=r"'note\.txt' has \d tokens, and 2 documents of 64 are wanted"):
        library.documents(Part.MEASURED, 2, 64)


def test_files_are_domains(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("Grüße", encoding="utf-8")
    (tmp_path / "two.bin").write_bytes(b"\xff\xfe")
    assert texts_of([tmp_path / "one.txt"]) == [Text("one.txt", "Grüße")]
    with pytest.raises(InvalidRequest, match=r"two\.bin is no text in UTF-8"):
        texts_of([tmp_path / "two.bin"])
