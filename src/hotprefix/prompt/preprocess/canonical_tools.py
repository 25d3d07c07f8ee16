"""Tools in one spelling: schemas with sorted keys, so that equal tools are equal bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hotprefix.prompt.chat import Tool
from hotprefix.prompt.preprocess.draft import Draft
from hotprefix.prompt.preprocess.edit import Edit, narrowed

_NAMED = frozenset(("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"))
"""Keywords whose value maps names of the author's own to schemas."""
_DATA = frozenset(("const", "default", "enum", "example", "examples"))
"""Keywords whose value is data, in which the order of a list means something."""

Arrange = Callable[[Sequence[Tool]], Sequence[Tool]]


class CanonicalTools:
    """Sorts the keys of parameter schemas, and the names in `required`; `arrange` may reorder the tools."""

    def __init__(self, name: str, arrange: Arrange) -> None:
        self._name = name
        self._arrange = arrange

    @property
    def name(self) -> str:
        return self._name

    def apply(self, draft: Draft) -> tuple[Draft, Sequence[Edit]]:
        edits: list[Edit] = []
        tools: list[Tool] = []
        for number, tool in enumerate(draft.tools):
            canonical = _canonical_tool(tool)
            old, new = _json(tool), _json(canonical)
            tools.append(tool if old == new else canonical)
            if old != new:
                edits.append(_edit(self._name, f"tools[{number}].function.parameters", tool, canonical))
        arranged = self._arrange(tools)
        if [_tool_name(tool) for tool in arranged] != [_tool_name(tool) for tool in tools]:
            edits.append(Edit(self._name, "tools", 0, _names(tools), _names(arranged)))
        return (replace(draft, tools=tuple(arranged)), edits) if edits else (draft, ())


def as_sent(tools: Sequence[Tool]) -> Sequence[Tool]:
    """Tools in the order of the request."""
    return tools


def by_name(tools: Sequence[Tool]) -> Sequence[Tool]:
    """Tools in the order of their names."""
    return sorted(tools, key=_tool_name)


def canonical_schema(schema: Any) -> Any:
    """A JSON schema with its keys sorted at every depth and the names in `required` sorted."""
    if isinstance(schema, Mapping):
        return {key: _member(key, schema[key]) for key in sorted(schema)}
    if isinstance(schema, list | tuple):
        return [canonical_schema(item) for item in schema]
    return schema


def _member(key: str, value: Any) -> Any:
    if key in _NAMED and isinstance(value, Mapping):
        return {name: canonical_schema(value[name]) for name in sorted(value)}
    if key in _DATA:
        return _sorted_keys(value)
    if key == "required" and isinstance(value, list) and all(isinstance(name, str) for name in value):
        return sorted(value)
    return canonical_schema(value)


def _sorted_keys(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted_keys(value[key]) for key in sorted(value)}
    return [_sorted_keys(item) for item in value] if isinstance(value, list | tuple) else value


def _canonical_tool(tool: Tool) -> Tool:
    function = tool.get("function")
    if not isinstance(function, Mapping) or "parameters" not in function:
        return tool
    return {**tool, "function": {**function, "parameters": canonical_schema(function["parameters"])}}


def _edit(step: str, path: str, old: Tool, new: Tool) -> Edit:
    change = narrowed(0, _json(old["function"]["parameters"]), _json(new["function"]["parameters"]))
    return Edit(step, path, change.start, change.removed, change.inserted)


def _tool_name(tool: Tool) -> str:
    function = tool.get("function")
    return str(function.get("name", "")) if isinstance(function, Mapping) else ""


def _names(tools: Sequence[Tool]) -> str:
    return ", ".join(_tool_name(tool) for tool in tools)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
