"""The segmented tokenizer equals the plain one, and remembers within its bound."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken
from tokenizers import Tokenizer as Library

from hotprefix.base.errors import InvalidRequest
from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.segments import SegmentedTokenizer, encode_for

PIECES = st.sampled_from(
    [
        "<|im_start|>",
        "<|im_end|>",
        "<|im_",
        "|>",
        "\n",
        "  ",
        " hello the",
        "你好",
        "e\u0301",
        "😀" * 40,
        "x1 " * 50,
    ]
)
TEXT = st.lists(PIECES | st.text(max_size=8), max_size=25).map("".join)


class Counting(HfTokenizer):
    """Counts the characters that really get encoded."""

    characters = 0

    def encode(self, text: str) -> list[int]:
        self.characters += len(text)
        return super().encode(text)


@settings(max_examples=300, deadline=None)
@given(TEXT)
def test_equals_the_plain_tokenizer(byte_level_json: Path, text: str) -> None:
    plain = HfTokenizer(byte_level_json)
    segmented = SegmentedTokenizer(plain, 10_000)
    expected = plain.encode(text)
    assert segmented.encode(text) == expected
    assert segmented.encode(text) == expected  # now from the cache


@settings(max_examples=150, deadline=None)
@given(TEXT)
def test_equals_the_plain_tokenizer_in_every_kind(
    byte_level_json: Path, sentence_piece_json: Path, tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    from tokenizers import normalizers

    folder = tmp_path_factory.getbasetemp()
    for label, flags in (("l", {"lstrip": True}), ("w", {"single_word": True}), ("n", {"normalized": True})):
        library = Library.from_file(str(byte_level_json))
        library.normalizer = normalizers.NFC()
        library.add_tokens([AddedToken("hello", **flags), AddedToken("hello the")])
        library.save(str(folder / f"{label}.json"))
    for path in (sentence_piece_json, *(folder / f"{label}.json" for label in "lwn")):
        plain = HfTokenizer(path)
        assert SegmentedTokenizer(plain, 10_000).encode(text) == plain.encode(text)


def test_a_conversation_encodes_only_its_new_part(byte_level_json: Path) -> None:
    inner = Counting(byte_level_json)
    segmented = SegmentedTokenizer(inner, 1 << 20)
    turn = "<|im_start|>user\n" + "hello the world " * 20 + "<|im_end|>"
    segmented.encode(turn * 3)
    first = inner.characters
    segmented.encode(turn * 3 + "<|im_start|>new<|im_end|>")
    assert inner.characters - first == len("new")


def test_the_cache_stays_in_its_bound_and_drops_the_oldest(byte_level_json: Path) -> None:
    inner = Counting(byte_level_json)
    segmented = SegmentedTokenizer(inner, 2_000)
    for number in range(50):
        segmented.encode(f"{number:04}" + "x" * 100)
        assert segmented.cached_bytes <= 2_000
    assert segmented.cached_bytes > 0
    before = inner.characters
    segmented.encode("0049" + "x" * 100)
    assert inner.characters == before
    segmented.encode("0000" + "x" * 100)
    assert inner.characters > before


def test_a_segment_over_the_bound_is_not_kept(byte_level_json: Path) -> None:
    segmented = SegmentedTokenizer(HfTokenizer(byte_level_json), 500)
    segmented.encode("x" * 1000)
    assert segmented.cached_bytes == 0


def test_lone_surrogates_are_refused(byte_level_json: Path) -> None:
    segmented = SegmentedTokenizer(HfTokenizer(byte_level_json), 10_000)
    for text in ("a\udc00", "x" * 100 + "\udc00"):
        with pytest.raises(InvalidRequest, match="surrogate"):
            segmented.encode(text)


@pytest.mark.model
def test_equals_the_default_models_tokenizer(default_model: ModelManifest) -> None:
    plain = HfTokenizer(default_model.tokenizer)
    segmented = SegmentedTokenizer(plain, 1 << 20)
    text = "".join(
        f"<|im_start|>user\n{i} 你好 def f(x):\n    return x  # 12345 <file_sep>"
        + " the quick fox" * 30
        + "<|im_end|>\n"
        for i in range(20)
    )
    assert segmented.encode(text) == plain.encode(text)
    assert segmented.encode(text) == plain.encode(text)


def test_what_one_tenant_sent_is_tokenised_anew_for_another(byte_level_json: Path) -> None:
    """Else the time until an answer would tell what others have sent."""
    inner = Counting(byte_level_json)
    segmented = SegmentedTokenizer(inner, 1 << 20)
    text = "hello the world " * 20

    def characters(tenant: str) -> int:
        before = inner.characters
        assert encode_for(segmented, tenant, text) == inner.encode(text)
        return inner.characters - before - len(text)

    assert [characters(tenant) for tenant in ("a", "b", "a", "b", "")] == [len(text)] * 2 + [0, 0, len(text)]
