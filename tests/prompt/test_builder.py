"""Prompts end to end: text, tokens, limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hotprefix.base.errors import ContextLengthExceeded, InvalidRequest
from hotprefix.prompt.answers import AnswerMemory
from hotprefix.prompt.builder import PromptBuilder
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.segments import SegmentedTokenizer
from hotprefix.prompt.spans import ContentBlock
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


class Recording(HfTokenizer):
    """Remembers what really gets tokenised."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.seen: list[str] = []

    def encode(self, text: str) -> list[int]:
        self.seen.append(text)
        return super().encode(text)


@pytest.mark.parametrize("recalls", [True, False])
def test_no_prompt_is_sooner_tokenised_because_another_tenant_sent_it(
    byte_level_json: Path, recalls: bool
) -> None:
    """By any way in: the time until an answer tells nothing of others, `/tokenize` included."""
    inner = Recording(byte_level_json)
    segmented = SegmentedTokenizer(inner, 1 << 20)
    answers = AnswerMemory(segmented, 1 << 20) if recalls else None
    builder = PromptBuilder(segmented, JinjaTemplate(CHATML), answers=answers)
    words = "hello the world " * 20
    said = [{"role": "user", "content": words}]
    blocks = [[ContentBlock("messages[0].content", "user", words)]]
    begun = [*said, {"role": "assistant", "content": words}]
    ways: list[Callable[[str], object]] = [
        lambda tenant: builder.text(words, tenant),
        lambda tenant: builder.chat(said, (), {}, tenant),
        lambda tenant: builder.spanned(said, blocks, (), {}, tenant),
        lambda tenant: builder.measured(said, blocks, (), {}, tenant),
        lambda tenant: builder.continued(begun, [*blocks, *blocks], (), {}, tenant),
    ]

    def tokenised(tenant: str) -> list[list[str]]:
        seen = []
        for way in ways:
            inner.seen.clear()
            way(tenant)
            seen.append(list(inner.seen))
        return seen

    first = tokenised("owner")
    assert tokenised("stranger") == first
    assert tokenised("owner") != first
