"""What two requests share, stage by stage: bytes, content blocks, rendered prompt, tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from hotprefix.diagnosis.canonical import first_difference as path_of_difference
from hotprefix.diagnosis.text import common_length
from hotprefix.diagnosis.tool_change import tool_change
from hotprefix.diagnosis.toolset import record_tools
from hotprefix.doctor.explain import difference as differing
from hotprefix.doctor.explain.difference import Difference, first_difference
from hotprefix.doctor.lenient import as_sent
from hotprefix.doctor.rendering import Rendered
from hotprefix.prompt.spans import SpannedPrompt

_TOOL_BYTES = 1 << 16


class StageName(StrEnum):
    """From what is sent to what is computed."""

    BYTES = "bytes"
    TOOLS = "tools"
    BLOCKS = "content blocks"
    TEMPLATE = "rendered prompt"
    TOKENS = "tokens"


@dataclass(frozen=True, slots=True)
class Stage:
    """`shared` of the leading units (bytes, tools, blocks, characters, tokens) are the same in both; `sizes`
    are those of the earlier and of the later request. `at` is where the difference is, in units."""

    name: StageName
    shared: int
    sizes: tuple[int, int]
    difference: Difference | None = None
    note: str = ""

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return self.sizes[0] == self.sizes[1] == self.shared

    @property
    def is_continued(self) -> bool:
        """Whether the later request goes on where the earlier one ends."""
        return self.shared == self.sizes[0] < self.sizes[1]

    def redacted(self) -> Stage:
        """Without texts."""
        if self.difference is None:
            return self
        return replace(self, difference=differing.redacted(self.difference))


def compare_stages(old: Rendered, new: Rendered, context: int = differing.CONTEXT) -> tuple[Stage, ...]:
    """All stages in order; that of the tools only if there are any."""
    return (
        _bytes(old, new, context),
        *_tools(old, new, context),
        _blocks(old.prompt, new.prompt, context),
        _template(old.prompt, new.prompt, context),
        _tokens(old.prompt, new.prompt, context),
    )


def block_at(prompt: SpannedPrompt, char: int) -> str:
    """The JSON path of the block at a character of the rendered prompt."""
    return next((span.block.path for span in prompt.spans if char < span.end_char), "answer")


def _bytes(old: Rendered, new: Rendered, context: int) -> Stage:
    """Bodies as compact JSON in the order of their own keys."""
    before, after = as_sent(old.recorded.body), as_sent(new.recorded.body)
    shared = common_length(before, after)
    if before == after:
        return Stage(StageName.BYTES, shared, (len(before), len(after)))
    path = path_of_difference(_native(old.recorded.body), _native(new.recorded.body)).lstrip(".")
    one, other = (data.decode("utf-8", "replace") for data in (before, after))
    found = first_difference(one, other, path, context)
    if found is not None:
        found = replace(found, at=shared)
    return Stage(StageName.BYTES, shared, (len(before), len(after)), found)


def _tools(old: Rendered, new: Rendered, context: int) -> tuple[Stage, ...]:
    if not old.tools and not new.tools:
        return ()
    records = [record_tools(rendered.tools, _TOOL_BYTES).tools for rendered in (old, new)]
    shared = 0
    for before, after in zip(*records, strict=False):
        if before.digest != after.digest:
            break
        shared += 1
    sizes = (len(records[0]), len(records[1]))
    change = tool_change(*(record_tools(rendered.tools, _TOOL_BYTES) for rendered in (old, new)))
    if change is None:
        return (Stage(StageName.TOOLS, shared, sizes),)
    one, other = (_text_of(rendered.tools, shared) for rendered in (old, new))
    found = first_difference(one, other, change.path, context)
    note = f"{change.reason}: {change.detail}" if change.detail else str(change.reason)
    return (Stage(StageName.TOOLS, shared, sizes, found, note),)


def _text_of(tools: Sequence[Mapping[str, Any]], at: int) -> str:
    return as_sent(tools[at]).decode("utf-8", "replace") if at < len(tools) else ""


def _blocks(old: SpannedPrompt, new: SpannedPrompt, context: int) -> Stage:
    """Blocks as the client sent them: role and text."""
    shared = 0
    for before, after in zip(old.spans, new.spans, strict=False):
        if (before.block.role, before.block.text) != (after.block.role, after.block.text):
            break
        shared += 1
    sizes = (len(old.spans), len(new.spans))
    if shared == min(sizes):
        at = new.spans[shared].block.path if shared < sizes[1] else ""
        note = f"goes on at {at}" if at else ""
        return Stage(StageName.BLOCKS, shared, sizes, note=note)
    one, other = old.spans[shared].block, new.spans[shared].block
    found = first_difference(one.text, other.text, other.path, context)
    note = "" if one.role == other.role else f"the role is {other.role}, it was {one.role}"
    return Stage(StageName.BLOCKS, shared, sizes, found, note)


def _template(old: SpannedPrompt, new: SpannedPrompt, context: int) -> Stage:
    shared = common_length(old.text, new.text)
    found = first_difference(old.text, new.text, block_at(new, shared), context)
    return Stage(StageName.TEMPLATE, shared, (len(old.text), len(new.text)), found)


def _tokens(old: SpannedPrompt, new: SpannedPrompt, context: int) -> Stage:
    """The place in characters is that of the last block border before; the index is exact."""
    ids = (old.token_ids, new.token_ids)
    shared = next((at for at, pair in enumerate(zip(*ids, strict=False)) if pair[0] != pair[1]), -1)
    if shared < 0:
        shared = min(map(len, ids))
    path = next((span.block.path for span in new.spans if shared < span.end_token), "answer")
    stage = Stage(StageName.TOKENS, shared, (len(ids[0]), len(ids[1])))
    return stage if stage.is_equal else replace(stage, note=f"token {shared}, in {path}")


def _native(value: Any) -> Any:
    """Mappings and sequences of YAML and JSON as plain ones."""
    if isinstance(value, Mapping):
        return {key: _native(item) for key, item in value.items()}
    return [_native(item) for item in value] if isinstance(value, list | tuple) else value
