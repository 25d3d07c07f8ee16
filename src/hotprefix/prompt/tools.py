"""Tools for models whose template has no place for them, in the Hermes notation that small models know."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hotprefix.base.errors import InvalidRequest
from hotprefix.prompt.arguments import CLOSE
from hotprefix.prompt.chat import Message, Tool
from hotprefix.prompt.template import flat_content
from hotprefix.prompt.tool_calls import OPEN

_INTRODUCTION = """You can call the functions listed below, one JSON object per line.
<tools>
{tools}
</tools>
To call a function, answer with its name and arguments as JSON between <tool_call> tags, \
one pair of tags per call:
<tool_call>{{"name": "function-name", "arguments": {{"parameter": "value"}}}}</tool_call>
The results come back between <tool_response> tags. If no function helps, answer in plain words."""


def write_tools_into(messages: Sequence[Message], tools: Sequence[Tool]) -> list[Message]:
    """The conversation with tools, calls and results written as plain text.

    The tool list ends the system message (a new one if there is none), so that conversations
    with the same tools share it. Raises `InvalidRequest` for calls without a function name.
    """
    plain: list[Message] = []
    responses: list[str] = []
    for message in messages:
        if message.get("role") == "tool":
            responses.append(_response(message))
            continue
        _flush(responses, plain)
        plain.append(_with_calls(message))
    _flush(responses, plain)
    return _with_system(plain, tools_text(tools)) if tools else plain


def tools_text(tools: Sequence[Tool]) -> str:
    """The instructions that list `tools`, in the order and key order given."""
    lines = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    return _INTRODUCTION.format(tools=lines)


def call_text(name: str, arguments: str) -> str:
    """One call as the model is asked to write it; `arguments` is JSON text, kept byte for byte."""
    return f'{OPEN}{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": {arguments}}}{CLOSE}'


def tool_call_lark(tools: Sequence[Tool], most_calls: int = 1) -> str:
    """A grammar in llguidance's Lark dialect that forces one to `most_calls` calls of `tools`.

    Arguments follow each tool's parameter schema. Raises `InvalidRequest` without tools.
    """
    if not tools:
        raise InvalidRequest("A tool call can't be required without tools.", param="tools")
    more = f' ("\\n" call){{0,{most_calls - 1}}}' if most_calls > 1 else ""
    rules = [f"start: call{more}", "call: " + " | ".join(f"call_{i}" for i in range(len(tools)))]
    for index, tool in enumerate(tools):
        function = _function(tool)
        opening, _, closing = call_text(str(function["name"]), "\0").partition("\0")
        schema = function.get("parameters") or {"type": "object"}
        rules.append(f"call_{index}: {_literal(opening)} arguments_{index} {_literal(closing)}")
        rules.append(f"arguments_{index}: %json {json.dumps(schema)}")
    return "\n".join(rules) + "\n"


def _literal(text: str) -> str:
    # Lark reads the escapes of JSON strings.
    return json.dumps(text)


def _function(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    function = tool.get("function")
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise InvalidRequest("Every tool and tool call needs a function with a name.", param="tools")
    return function


def _with_calls(message: Message) -> Message:
    calls = message.get("tool_calls")
    content = flat_content(message.get("content"))
    kept = {key: value for key, value in message.items() if key != "tool_calls"}
    if not calls:
        return kept | {"content": content}
    written = []
    for call in calls:
        function = _function(call)
        arguments = function.get("arguments") or "{}"
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments, ensure_ascii=False)
        written.append(call_text(str(function["name"]), arguments))
    return kept | {"content": "\n".join([*([content] if content else []), *written])}


def _response(message: Message) -> str:
    return f"<tool_response>{flat_content(message.get('content'))}</tool_response>"


def _flush(responses: list[str], into: list[Message]) -> None:
    """Results of one turn become one user message: templates without tools know no other role."""
    if responses:
        into.append({"role": "user", "content": "\n".join(responses)})
        responses.clear()


def _with_system(messages: list[Message], text: str) -> list[Message]:
    if messages and messages[0].get("role") in ("system", "developer"):
        first = messages[0]
        content = flat_content(first.get("content"))
        merged = f"{content}\n\n{text}" if content else text
        return [dict(first) | {"content": merged}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]
