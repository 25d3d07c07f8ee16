"""How many tokens of a request lie before each of its parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hotprefix.base.errors import InvalidRequest
from hotprefix.diagnosis.toolset import tool_name
from hotprefix.doctor.lint.measure import Measure, Ruler
from hotprefix.doctor.lint.request import Block, LintRequest, Part
from hotprefix.prompt.builder import PromptBuilder
from hotprefix.prompt.spans import ContentBlock


class Layout:
    """Tokens of the texts put together, without what a chat template adds."""

    def __init__(self, blocks: tuple[Block, ...], measure: Measure) -> None:
        self._blocks = blocks
        self._measure = measure

    @cached_property
    def _ends(self) -> list[int]:
        ends, done = [], 0
        for block in self._blocks:
            done += self._measure.count(block.text)
            ends.append(done)
        return ends

    @property
    def total(self) -> int:
        """Tokens of all blocks."""
        return self._ends[-1] if self._ends else 0

    def before(self, block: int, offset: int = 0) -> int:
        """Tokens before the character `offset` of a block."""
        start = self._ends[block - 1] if block else 0
        return start + (self._measure.count(self._blocks[block].text[:offset]) if offset else 0)

    def up_to(self, block: int) -> int:
        """Tokens up to the end of a block."""
        return self._ends[block]


@dataclass(frozen=True, slots=True)
class _Rendered:
    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


class RenderedLayout(Layout):
    """Tokens of the prompt as the model's own chat template renders it."""

    def __init__(self, blocks: tuple[Block, ...], measure: Measure, rendered: _Rendered) -> None:
        super().__init__(blocks, measure)
        self._rendered = rendered

    @cached_property
    def _ends(self) -> list[int]:
        return [self._measure.count(self._rendered.text[:end]) for end in self._rendered.ends]

    @cached_property
    def _all(self) -> int:
        return self._measure.count(self._rendered.text)

    @property
    def total(self) -> int:
        return self._all

    def before(self, block: int, offset: int = 0) -> int:
        return self._measure.count(self._rendered.text[: self._rendered.starts[block] + offset])


def layout_of(request: LintRequest, ruler: Ruler) -> Layout:
    """By the real template where the model is prepared and takes the messages."""
    if ruler.builder is not None:
        rendered = _rendered(request, ruler.builder)
        if rendered is not None:
            return RenderedLayout(request.blocks, ruler.measure, rendered)
    return Layout(request.blocks, ruler.measure)


def _rendered(request: LintRequest, builder: PromptBuilder) -> _Rendered | None:
    groups: dict[tuple[int, str], list[Block]] = {}
    for block in request.blocks:
        if block.part is not Part.TOOLS:
            groups.setdefault((block.message, block.role), []).append(block)
    messages = [
        {"role": role or "user", "content": "".join(block.text for block in blocks)}
        for (_, role), blocks in groups.items()
    ]
    content = [
        [ContentBlock(block.path, block.role, block.text) for block in blocks] for blocks in groups.values()
    ]
    tools = [_openai_tool(tool.definition) for tool in request.tools]
    try:
        prompt = builder.measured(messages, content, tools)
    except InvalidRequest:
        return None
    ends = {span.block.path: span.end_char for span in prompt.spans}
    places = [_place(block, prompt.text, ends) for block in request.blocks]
    return _Rendered(prompt.text, tuple(start for start, _ in places), tuple(end for _, end in places))


def _place(block: Block, text: str, ends: Mapping[str, int]) -> tuple[int, int]:
    """Where a block's text starts and ends in the prompt; a tool is looked for by its JSON."""
    if block.part is not Part.TOOLS:
        end = ends[block.path]
        return max(0, end - len(block.text)), end
    start = text.find(block.text)
    if start < 0:
        start = max(0, text.find(f'"{tool_name(json.loads(block.text))}"'))
    return start, min(len(text), start + len(block.text))


def _openai_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Anthropic's and the Responses API's tools in the form that chat templates know."""
    if "function" in tool:
        return tool
    function = {"name": tool.get("name"), "description": tool.get("description", "")}
    function["parameters"] = tool.get("input_schema", tool.get("parameters", {}))
    return {"type": "function", "function": function}
