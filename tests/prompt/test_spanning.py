"""Content blocks are found in the rendered prompt, in characters and in tokens."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.base.errors import InvalidRequest
from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.builder import PromptBuilder
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.spans import ContentBlock
from hotprefix.prompt.template import JinjaTemplate

TRIMMING = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content | trim }}<|im_end|>\n"
    "{% endfor %}<|im_start|>assistant\n"
)


def blocks_of(texts: list[list[str]]) -> tuple[list[dict[str, Any]], list[list[ContentBlock]]]:
    messages, blocks = [], []
    for number, parts in enumerate(texts):
        role = "user" if number % 2 else "system"
        messages.append({"role": role, "content": "".join(parts)})
        blocks.append(
            [ContentBlock(f"messages[{number}].content[{at}]", role, part) for at, part in enumerate(parts)]
        )
    return messages, blocks


@pytest.fixture(scope="module")
def builder(tiny_model: ModelManifest) -> PromptBuilder:
    return PromptBuilder(HfTokenizer(tiny_model.tokenizer), JinjaTemplate(tiny_model.chat_template))


def test_every_block_ends_where_its_text_ends(builder: PromptBuilder) -> None:
    messages, blocks = blocks_of([["You sell hats. ", "Be kind."], ["user"], ["帽子 🎩 hat", "", "hat"]])
    prompt = builder.spanned(messages, blocks)
    assert prompt.text == builder.chat_text(messages)
    assert list(prompt.token_ids) == builder.chat(messages)
    for span in prompt.spans:
        assert prompt.text[: span.end_char].endswith(span.block.text)
    ends = [span.end_char for span in prompt.spans]
    assert ends == sorted(ends)
    assert prompt.text[ends[1] :].startswith("<|im_end|>")
    assert prompt.text[ends[2] :].startswith("<|im_end|>\n<|im_start|>system"), "not the role's `user`"


def test_tools_written_into_the_system_message_move_no_block(builder: PromptBuilder) -> None:
    messages, blocks = blocks_of([["You sell hats."], ["How much?"]])
    tool = {"type": "function", "function": {"name": "price", "parameters": {"type": "object"}}}
    prompt = builder.spanned(messages, blocks, [tool])
    assert '"price"' in prompt.text
    assert prompt.text[: prompt.spans[1].end_char].endswith("How much?")


def test_a_template_that_trims(tiny_model: ModelManifest) -> None:
    builder = PromptBuilder(HfTokenizer(tiny_model.tokenizer), JinjaTemplate(TRIMMING))
    messages, blocks = blocks_of([["  You sell hats.  "], ["\nHow much?\n"]])
    prompt = builder.spanned(messages, blocks)
    assert [prompt.text[: span.end_char][-9:] for span in prompt.spans] == ["ell hats.", "How much?"]


TEXT = st.text(st.sampled_from("ab t\n<|>🙂你\u2028"), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(TEXT, min_size=1, max_size=3), min_size=1, max_size=4))
def test_token_ends_count_the_whole_tokens_before_a_block_ends(
    builder: PromptBuilder, texts: list[list[str]]
) -> None:
    messages, blocks = blocks_of(texts)
    prompt = builder.spanned(messages, blocks)
    tokenizer = builder._tokenizer
    for span in prompt.spans:
        size = len(prompt.text[: span.end_char].encode())
        lengths = [len(tokenizer.token_bytes(token)) for token in prompt.token_ids[: span.end_token + 1]]
        assert sum(lengths[: span.end_token]) <= size
        assert len(lengths) == span.end_token or sum(lengths) > size


def test_an_answer_that_was_begun_ends_the_prompt(builder: PromptBuilder) -> None:
    messages, blocks = blocks_of([["You sell hats."], ["How much?"]])
    messages.append({"role": "assistant", "content": "That hat costs"})
    blocks.append([ContentBlock("messages[2].content", "assistant", "That hat costs")])
    prompt = builder.continued(messages, blocks)
    assert prompt.text == builder.chat_text(messages[:2]) + "That hat costs"
    assert prompt.spans[-1].end_char == len(prompt.text)
    assert prompt.spans[-1].end_token == len(prompt.token_ids)


def test_a_template_that_changes_a_begun_answer_refuses_it(tiny_model: ModelManifest) -> None:
    source = "{% for message in messages %}{{ message.content | upper }}\n{% endfor %}"
    builder = PromptBuilder(HfTokenizer(tiny_model.tokenizer), JinjaTemplate(source))
    messages, blocks = blocks_of([["Hats"], ["The hat"]])
    with pytest.raises(InvalidRequest, match="does not support assistant message prefill"):
        builder.continued(messages, blocks)
