"""Prompts without a model: a plain layout, and pieces of text that are about as many as its tokens.

Pieces: a short word with its blank, one digit, two Chinese characters, a run of punctuation. Measured against
the tokenizer of Qwen, that gives 0.86 to 1.12 times its tokens: Chinese prose at the low end, Python at the
high one, English and JSON within 5 %. Equal text has equal pieces, and a change shows in the piece where it
is; only sizes are estimates.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from enum import StrEnum
from itertools import accumulate
from typing import Any, Protocol

from xxhash import xxh32_intdigest

from hotprefix.prompt.chat import ChatTemplate, Message, Tool
from hotprefix.prompt.spanning import block_ends
from hotprefix.prompt.spans import BlockSpan, ContentBlock, SpannedPrompt
from hotprefix.prompt.template import JinjaTemplate
from hotprefix.prompt.tools import write_tools_into

_PIECES = re.compile(
    r"<\|\w+\|>|[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]{1,2}| ?[A-Za-z]{1,8}|\d"
    r"| ?(?:(?!<\|)[^\w\s]){1,3}\n*|\s*\n+| +(?! )|\s+|\w|.",
    re.DOTALL,
)
_LARGEST_ID = 0x7FFFFFFF
_REMEMBERED = 1 << 18

_CALLS = """\
{%- for call in message.tool_calls or [] %}

<tool_call>
{"name": {{ call.function.name | tojson }}, "arguments": {{ call.function.arguments | tojson }}}
</tool_call>
{%- endfor %}"""
_TOOLS = """\
# Tools
{% for tool in tools %}
{{ tool | tojson }}
{%- endfor %}"""
_MESSAGES = (
    """\
{%- for message in messages -%}
<|im_start|>{{ message.role }}
{{ message.content }}"""
    + _CALLS
    + """
{%- if loop.first and tools and message.role == 'system' and not tools_first %}


"""
    + _TOOLS
    + """
{%- endif %}<|im_end|>
{% endfor -%}
{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
)
_HEAD = (
    """\
{%- if tools and (tools_first or not messages or messages[0].role != 'system') -%}
<|im_start|>system
"""
    + _TOOLS
    + """<|im_end|>
{% endif -%}"""
)


class Layout(StrEnum):
    """Where a vendor's prompt has the tools."""

    TOOLS_FIRST = "tools first"
    TOOLS_LAST = "tools behind the system text"


def layout_of(vendor: str) -> Layout:
    """Anthropic and OpenAI put tools before the system text, Qwen's template behind it."""
    return Layout.TOOLS_FIRST if vendor in ("anthropic", "openai") else Layout.TOOLS_LAST


def plain_template(layout: Layout) -> ChatTemplate:
    """ChatML with tools where `layout` says; for models whose own template is not known."""
    first = "true" if layout is Layout.TOOLS_FIRST else "false"
    return JinjaTemplate(f"{{%- set tools_first = {first} -%}}{_HEAD}{_MESSAGES}")


class Prompts(Protocol):
    """Renders and tokenises conversations, as `PromptBuilder` does. See there."""

    def spanned(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
        tenant: str = "",
    ) -> SpannedPrompt: ...

    def continued(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
        tenant: str = "",
    ) -> SpannedPrompt: ...


class EstimatedPrompts:
    """Prompts in pieces."""

    def __init__(self, template: ChatTemplate) -> None:
        self._template = template
        self._ids = PieceIds()

    def spanned(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
        tenant: str = "",
    ) -> SpannedPrompt:
        """A conversation with its blocks, and the opening of the answer at its end."""
        text = self._text(messages, tools, variables)
        ends = block_ends(lambda some: self._text(some, tools, variables), text, messages, blocks)
        return self._in_pieces(text, blocks, ends)

    def continued(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
        tenant: str = "",
    ) -> SpannedPrompt:
        """A conversation whose last message is an answer that was begun."""
        ended = dict(variables or {}) | {"add_generation_prompt": False}
        whole = self.spanned(messages, blocks, tools, ended)
        end = whole.spans[-1].end_char if whole.spans else len(whole.text)
        return self._in_pieces(whole.text[:end], blocks, [span.end_char for span in whole.spans])

    def _text(
        self, messages: Sequence[Message], tools: Sequence[Tool], variables: Mapping[str, Any] | None
    ) -> str:
        if not self._template.handles_tools:
            return self._template.render(write_tools_into(messages, tools), (), variables)
        return self._template.render(messages, tools, variables)

    def _in_pieces(
        self, text: str, blocks: Sequence[Sequence[ContentBlock]], ends: Sequence[int]
    ) -> SpannedPrompt:
        found = pieces(text)
        piece_ends = list(accumulate(map(len, found)))
        flat = [block for group in blocks for block in group]
        spans = (
            BlockSpan(block, end, bisect_right(piece_ends, end))
            for block, end in zip(flat, ends, strict=True)
        )
        return SpannedPrompt(text, self._ids.of(found), tuple(spans))


class PieceIds:
    """Ids of pieces: hashes of their text, below 2^31. Those of the latest pieces are remembered."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, some: Sequence[str]) -> tuple[int, ...]:
        """An id for each piece."""
        known = self._known
        if len(known) > _REMEMBERED:
            known.clear()
        for piece in set(some).difference(known):
            known[piece] = xxh32_intdigest(piece.encode("utf-8", "surrogatepass")) & _LARGEST_ID
        return tuple(map(known.__getitem__, some))


def pieces(text: str) -> list[str]:
    """The text, cut."""
    return _PIECES.findall(text)
