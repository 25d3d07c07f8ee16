"""How two tool lists differ."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.diagnosis.canonical import first_difference
from hotprefix.diagnosis.reason import Reason
from hotprefix.diagnosis.toolset import ToolRecord, ToolSet

SCHEMA_KEY_ORDER = "SCHEMA_KEY_ORDER"


@dataclass(frozen=True, slots=True)
class ToolChange:
    """`tool` is the name of the first tool concerned, `path` where it differs, in the new request
    (or, if it is gone, in the old one)."""

    reason: Reason
    detail: str
    path: str
    tool: str


def tool_change(old: ToolSet, new: ToolSet) -> ToolChange | None:
    """What is the first thing that changed in the tools; None if their JSON is the same."""
    if old.digest == new.digest:
        return None
    index = _first_other(old.tools, new.tools)
    before, after = old.tools[index : index + 1], new.tools[index : index + 1]
    meanings = [[tool.meaning for tool in tools.tools] for tools in (old, new)]
    if meanings[0] == meanings[1]:
        path = f"tools[{index}]" + _path_within(before[0], after[0])
        return ToolChange(Reason.ARG_KEY_ORDER, SCHEMA_KEY_ORDER, path, after[0].name)
    if Counter(meanings[0]) == Counter(meanings[1]):
        moved, place = _first_moved(old.tools, new.tools)
        return ToolChange(Reason.TOOLS_REORDERED, moved, f"tools[{place}]", moved)
    return _changed(old.tools, new.tools, index)


def _changed(old: Sequence[ToolRecord], new: Sequence[ToolRecord], index: int) -> ToolChange:
    path = f"tools[{index}]"
    old_names, new_names = Counter(tool.name for tool in old), Counter(tool.name for tool in new)
    before = old[index] if index < len(old) else None
    after = new[index] if index < len(new) else None
    if before is not None and after is not None and before.name == after.name:
        path += _path_within(before, after)
        return ToolChange(Reason.TOOLS_CHANGED, after.name, path, after.name)
    if after is not None and after.name not in old_names:
        return ToolChange(Reason.TOOLS_CHANGED, f"+{after.name}", path, after.name)
    if before is not None and before.name not in new_names:
        return ToolChange(Reason.TOOLS_CHANGED, f"-{before.name}", path, before.name)
    name = (after or before or old[0]).name
    return ToolChange(Reason.TOOLS_CHANGED, name, path, name)


def _first_other(old: Sequence[ToolRecord], new: Sequence[ToolRecord]) -> int:
    for index, (before, after) in enumerate(zip(old, new, strict=False)):
        if before.digest != after.digest:
            return index
    return min(len(old), len(new))


def _first_moved(old: Sequence[ToolRecord], new: Sequence[ToolRecord]) -> tuple[str, int]:
    """The tool that moved, and its new place: the one without which more of the lists agrees."""
    before, after = [tool.meaning for tool in old], [tool.meaning for tool in new]
    index = next(i for i, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1])
    left, arrived = before[index], after[index]
    if _agreement(before, after, arrived) > _agreement(before, after, left):
        return new[index].name, index
    return old[index].name, after.index(left)


def _agreement(before: list[bytes], after: list[bytes], tool: bytes) -> int:
    rest = [[other for other in tools if other != tool] for tools in (before, after)]
    return sum(one == other for one, other in zip(*rest, strict=True))


def _path_within(before: ToolRecord, after: ToolRecord) -> str:
    if not before.text or not after.text:
        return ""
    try:
        return first_difference(json.loads(before.text), json.loads(after.text))
    except RecursionError:
        return ""
