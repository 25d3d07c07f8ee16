"""Prompts end to end: text, tokens, limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotprefix.base.errors import ContextLengthExceeded, InvalidRequest
from hotprefix.prompt.builder import PromptBuilder
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.template import JinjaTemplate
from tests.tiny_gguf import CHATML

USER = {"role": "user", "content": "hello"}
TOOL = {"type": "function", "function": {"name": "f"}}


class NeverEncodes(HfTokenizer):
    """Fails the test if text is tokenised."""

    def encode(self, text: str) -> list[int]:
        raise AssertionError("tokenised")


@pytest.fixture
def tokenizer(byte_level_json: Path) -> HfTokenizer:
    return HfTokenizer(byte_level_json)


def test_chat_is_the_templates_text_without_bos(tokenizer: HfTokenizer) -> None:
    builder = PromptBuilder(tokenizer, JinjaTemplate(CHATML), head=(0,))
    text = "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    assert builder.chat([USER]) == tokenizer.encode(text)


def test_raw_text_starts_with_the_head(tokenizer: HfTokenizer) -> None:
    builder = PromptBuilder(tokenizer, JinjaTemplate(CHATML), head=(0,))
    assert builder.text("hello") == [0, *tokenizer.encode("hello")]
    assert PromptBuilder(tokenizer, JinjaTemplate(CHATML)).text("") == []


def test_tools_are_written_where_the_template_has_no_place(tokenizer: HfTokenizer) -> None:
    assert '{"name": "f"}' in PromptBuilder(tokenizer, JinjaTemplate(CHATML)).chat_text([USER], [TOOL])
    own = JinjaTemplate("{{ tools | length }}{{ messages | length }}")
    assert PromptBuilder(tokenizer, own).chat_text([USER], [TOOL]) == "11"


def test_a_huge_text_is_refused_before_it_is_tokenised(byte_level_json: Path) -> None:
    builder = PromptBuilder(NeverEncodes(byte_level_json), JinjaTemplate(CHATML), limit=8192)
    with pytest.raises(ContextLengthExceeded, match="at least") as caught:
        builder.text("x" * 10_000_000)
    assert caught.value.param == "prompt"
    with pytest.raises(ContextLengthExceeded):
        builder.chat([{"role": "user", "content": "é" * 5_000_000}])


def test_the_exact_count_decides_at_the_limit(tokenizer: HfTokenizer) -> None:
    count = len(tokenizer.encode("zq" * 10))
    assert len(PromptBuilder(tokenizer, JinjaTemplate(CHATML), limit=count).text("zq" * 10)) == count
    with pytest.raises(ContextLengthExceeded, match=f"has {count} tokens; at most {count - 1} fit"):
        PromptBuilder(tokenizer, JinjaTemplate(CHATML), limit=count - 1).text("zq" * 10)
    with pytest.raises(ContextLengthExceeded):
        PromptBuilder(tokenizer, JinjaTemplate(CHATML), head=(0,), limit=count).text("zq" * 10)


def test_count_floor_never_exceeds_the_count(tokenizer: HfTokenizer) -> None:
    builder = PromptBuilder(tokenizer, JinjaTemplate(CHATML))
    for text in ("", "a", " the hello", "<|endoftext|>" * 3, "你好" * 9):
        assert builder.count_floor(text) <= len(tokenizer.encode(text))
    assert builder.count_floor("你" * tokenizer.longest_token) == 3


def test_lone_surrogates_are_refused(tokenizer: HfTokenizer) -> None:
    with pytest.raises(InvalidRequest):
        PromptBuilder(tokenizer, JinjaTemplate(CHATML)).chat([{"role": "user", "content": "\ud83d"}])
