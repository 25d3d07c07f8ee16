"""A request as the server's diagnosis remembers it, made without the server's model."""

from __future__ import annotations

import json
import re
from array import array
from dataclasses import dataclass
from typing import Any

from hotprefix.diagnosis.snapshot import PromptSnapshot, SnapshotExtras, take_snapshot
from hotprefix.doctor.lint.context import Context
from hotprefix.doctor.lint.request import Block, Part
from hotprefix.prompt.spans import BlockSpan, ContentBlock, SpannedPrompt

PARAMETERS = (
    "enable_thinking", "thinking_budget", "thinking", "reasoning_effort", "reasoning", "tool_choice",
    "response_format",
)  # fmt: skip
"""Parameters that enter the prompt or the cache's key."""

_ROOT = re.compile(r"^(?:input|parameters)\.")
_LONGEST_TEXT = 1 << 20


@dataclass(frozen=True, slots=True)
class Taken:
    """A snapshot and the real paths of its blocks."""

    snapshot: PromptSnapshot
    paths: dict[str, str]


def take(context: Context, number: int, scene: str) -> Taken:
    """Remember a request as the `number`-th; without a tokenizer, pieces of text stand for tokens."""
    spans, text, ids = [], [], array("i")
    paths: dict[str, str] = {}
    size, message = 0, None
    for block in context.request.blocks:
        path = _short(block)
        paths[path] = block.path
        content = ContentBlock(path, block.role or "user", block.text)
        # A call is told by its text, which is JSON from the first character on.
        is_first = block.message != message and not block.text.startswith("{")
        lead = f"<{content.role}>\n" if is_first else ""
        message = block.message
        for piece in (lead, block.text):
            ids.extend(context.ruler.measure.ids(piece))
            size += len(piece)
            text.append(piece)
        spans.append(BlockSpan(content, size, len(ids)))
    prompt = SpannedPrompt("".join(text), tuple(ids), tuple(spans))
    settings = context.request.settings
    extras = SnapshotExtras(
        model=context.request.model,
        parameters={name: _plain(settings[name]) for name in PARAMETERS if name in settings},
        tools=[tool.definition for tool in context.request.tools],
        markers=[use.block for use in context.markers if use.block is not None],
        scene=scene,
    )
    return Taken(take_snapshot(prompt, extras, float(number), _LONGEST_TEXT), paths)


def _short(block: Block) -> str:
    """The path as the diagnosis knows it: tools and messages without what is around them."""
    return (
        _ROOT.sub("", block.path) if block.part is not Part.SYSTEM or "messages" in block.path else block.path
    )


def _plain(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
