"""Fixes of what was seen to change: tools into a fixed order, keys into a fixed order."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from hotprefix.diagnosis.compare import Change
from hotprefix.diagnosis.reason import Reason
from hotprefix.diagnosis.toolset import tool_name
from hotprefix.doctor.lint.context import Context
from hotprefix.doctor.lint.edits import Fix
from hotprefix.doctor.lint.json_fixes import Tree, sort_items, sort_keys, sort_keys_in_string

_TOOL = re.compile(r"^(.*tools)\[\d+\]")
_ARGUMENTS = ("function.arguments", "arguments", "input")


def fix_of(context: Context, change: Change, path: str, earlier: Context | None) -> Fix | None:
    """Sorts in both requests, so that they agree; None for what has no safe fix."""
    fixes: list[Fix | None] = []
    for one in (context, earlier):
        if one is None:
            continue
        if change.reason is Reason.TOOLS_REORDERED:
            fixes.append(one.request.source.fix(partial(_sorted_tools, one)))
        elif change.reason is Reason.ARG_KEY_ORDER:
            fixes += _sorted_keys(one, path)
    edits = dict.fromkeys(edit for fix in fixes if fix is not None for edit in fix.edits)
    return Fix(tuple(edits)) if edits else None


def _sorted_tools(context: Context, tree: Tree) -> Fix | None:
    tools = context.request.tools
    names = [(tool_name(tool.definition), json.dumps(tool.definition, sort_keys=True)) for tool in tools]
    root = _TOOL.match(tools[0].path) if tools else None
    return sort_items(tree, root[1], _order(names)) if root else None


def _order(names: Sequence[Any]) -> list[int]:
    return sorted(range(len(names)), key=lambda number: names[number])


def _sorted_keys(context: Context, path: str) -> list[Fix | None]:
    source = context.request.source
    tool = _TOOL.match(path)
    if tool:
        return [source.fix(partial(_sorted_object, one.path)) for one in context.request.tools]
    return [source.fix(partial(_sorted_call, f"{path}.{name}")) for name in _ARGUMENTS]


def _sorted_object(path: str, tree: Tree) -> Fix | None:
    return sort_keys(tree, path)


def _sorted_call(path: str, tree: Tree) -> Fix | None:
    return sort_keys_in_string(tree, path) or sort_keys(tree, path)
