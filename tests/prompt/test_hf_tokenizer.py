"""Text ↔ tokens: bytes, streams, broken input."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Library

from hotprefix.base.errors import BrokenModelFile, InvalidRequest, UnsupportedModel
from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.hf_tokenizer import HfTokenizer

TEXTS = (
    "hello the world",
    "你好，世界！ 👩‍👩‍👧‍👦 😀",
    "<|im_start|>user\nhi<|im_end|>\n",
    "naïve café ﬁ ①",
    "\x00\x7f tab\t end ",
    "",
)


@pytest.fixture(scope="session")
def byte_level(byte_level_json: Path) -> HfTokenizer:
    return HfTokenizer(byte_level_json)


@pytest.fixture(scope="session")
def sentence_piece(sentence_piece_json: Path) -> HfTokenizer:
    return HfTokenizer(sentence_piece_json)


def _streamed(tokenizer: HfTokenizer, ids: list[int]) -> list[str]:
    stream = tokenizer.stream()
    return [*map(stream.push, ids), stream.finish()]


@pytest.mark.parametrize("text", TEXTS)
def test_round_trip(byte_level: HfTokenizer, sentence_piece: HfTokenizer, text: str) -> None:
    for tokenizer in (byte_level, sentence_piece):
        ids = tokenizer.encode(text)
        plain = text.replace("<|im_start|>", "").replace("<|im_end|>", "")
        assert tokenizer.decode(ids) == plain or ("<|im_" in text and tokenizer is sentence_piece)


def test_special_tokens_are_recognised_and_none_is_added(byte_level: HfTokenizer) -> None:
    assert byte_level.encode("<|im_start|>") == [1]
    assert byte_level.encode("a") == [byte_level.encode("aa")[0]]
    assert byte_level.token_bytes(1) == b"<|im_start|>"


def test_token_bytes_join_to_the_text(byte_level: HfTokenizer) -> None:
    for text in TEXTS:
        assert b"".join(map(byte_level.token_bytes, byte_level.encode(text))) == text.encode()


def test_sentence_piece_bytes(sentence_piece: HfTokenizer) -> None:
    ids = sentence_piece.encode("hello 中")
    assert b"".join(map(sentence_piece.token_bytes, ids)) == " hello 中".encode()
    assert sentence_piece.token_bytes(ids[-1]) == "中".encode()[-1:]


def test_every_id_has_bytes_and_ids_outside_have_none(byte_level: HfTokenizer) -> None:
    assert all(byte_level.token_bytes(i) for i in range(byte_level.vocab_size))
    assert byte_level.token_bytes(byte_level.vocab_size) == b""
    assert byte_level.token_bytes(-1) == b""


def test_stream_holds_back_unfinished_characters(byte_level: HfTokenizer) -> None:
    ids = byte_level.encode("😀")
    assert len(ids) == 4
    assert _streamed(byte_level, ids) == ["", "", "", "😀", ""]
    assert _streamed(byte_level, ids[:2]) == ["", "", "\ufffd"]


def test_stream_drops_specials_even_inside_a_character(byte_level: HfTokenizer) -> None:
    first, *rest = byte_level.encode("é")
    assert "".join(_streamed(byte_level, [1, first, 2, *rest, 0])) == "é"


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(0, 286), max_size=40))
def test_stream_and_decode_equal_the_library_for_any_ids(byte_level_json: Path, ids: list[int]) -> None:
    tokenizer = HfTokenizer(byte_level_json)
    library = Library.from_file(str(byte_level_json)).decode(ids, skip_special_tokens=True)
    assert tokenizer.decode(ids) == library
    assert "".join(_streamed(tokenizer, ids)) == library


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_sentence_piece_decodes_as_the_library(sentence_piece_json: Path, text: str) -> None:
    tokenizer = HfTokenizer(sentence_piece_json)
    ids = tokenizer.encode(text)
    library = Library.from_file(str(sentence_piece_json)).decode(ids, skip_special_tokens=True)
    assert "".join(_streamed(tokenizer, ids)) == library == tokenizer.decode(ids)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=200))
def test_longest_token_bounds_the_count(byte_level_json: Path, text: str) -> None:
    tokenizer = HfTokenizer(byte_level_json)
    assert len(tokenizer.encode(text)) * tokenizer.longest_token >= len(text.encode())


def test_longest_token_allows_for_composition(tmp_path: Path, byte_level_json: Path) -> None:
    library = Library.from_file(str(byte_level_json))
    from tokenizers.normalizers import NFC

    library.normalizer = NFC()
    library.save(str(tmp_path / "tokenizer.json"))
    tokenizer = HfTokenizer(tmp_path / "tokenizer.json")
    text = "\u1112\u1161\u11ab" * 50  # three letters of three bytes each compose to one
    assert len(tokenizer.encode(text)) * tokenizer.longest_token >= len(text.encode())


def test_lone_surrogate_is_the_clients_fault(byte_level: HfTokenizer) -> None:
    with pytest.raises(InvalidRequest, match=r"lone surrogate.*position 2"):
        byte_level.encode("ab\ud800")


def test_broken_file(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"version": "1.0"')
    with pytest.raises(BrokenModelFile, match=r"tokenizer\.json"):
        HfTokenizer(tmp_path / "tokenizer.json")


def test_word_piece_is_refused(tmp_path: Path, byte_level_json: Path) -> None:
    from tokenizers.decoders import WordPiece

    library = Library.from_file(str(byte_level_json))
    library.decoder = WordPiece()
    library.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(UnsupportedModel, match="WordPiece"):
        HfTokenizer(tmp_path / "tokenizer.json")


def test_truncation_in_the_file_is_ignored(tmp_path: Path, byte_level_json: Path) -> None:
    library = Library.from_file(str(byte_level_json))
    library.enable_truncation(4)
    library.enable_padding(length=8)
    library.save(str(tmp_path / "tokenizer.json"))
    assert len(HfTokenizer(tmp_path / "tokenizer.json").encode("x" * 20)) == 20


@pytest.mark.model
def test_default_model_streams_like_its_library(default_model: ModelManifest) -> None:
    tokenizer = HfTokenizer(default_model.tokenizer)
    library = Library.from_file(str(default_model.tokenizer))
    draw = random.Random(7)
    for _ in range(300):
        ids = [draw.randrange(tokenizer.vocab_size) for _ in range(draw.randrange(1, 60))]
        expected = library.decode(ids, skip_special_tokens=True)
        assert "".join(_streamed(tokenizer, ids)) == expected
    for text in TEXTS[:2]:
        assert "".join(_streamed(tokenizer, tokenizer.encode(text))) == text
