"""Bodies for other vendors → what the server's own parsers take: only what the prompt is made of.

What the server has no use for becomes text that stands for it, equal for equal things: an image is
`<image 3f2a…>`, with a digest of its JSON. Positions in arrays, and so JSON paths, stay as they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

import orjson

_TEXTS = ("text", "input_text", "output_text")
_ROLES = ("system", "developer", "user", "assistant", "tool")
_RESERVED = frozenset({"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"})
_VARIABLES = ("chat_template_kwargs", "enable_thinking")
_KNOWN_ITEMS = ("message", "function_call", "function_call_output", "reasoning")
_ANTHROPIC_BLOCKS = ("text", "tool_use", "tool_result", "thinking", "redacted_thinking")


class Reduction:
    """Reduces one body; `notes` say what was replaced, once each."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def chat(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """For `parse_chat`; tools are left out."""
        kept = self._common(body)
        kept["messages"] = self._each(body.get("messages"), self._chat_message)
        return kept

    def native(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """For `parse_native`; tools are left out."""
        given = body.get("input")
        source = dict(given) if isinstance(given, Mapping) else {}
        kept = {key: source[key] for key in ("prompt", "history") if source.get(key) is not None}
        if source.get("messages") is not None:
            kept["messages"] = self._each(source["messages"], self._chat_message)
        parameters = body.get("parameters")
        chosen = parameters if isinstance(parameters, Mapping) else {}
        thinking = chosen.get("enable_thinking")
        rest = {"enable_thinking": thinking} if isinstance(thinking, bool) else {}
        return {"model": _model(body), "input": kept, "parameters": rest}

    def responses(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """For `parse_responses`; tools are left out."""
        kept = self._common(body)
        given = body.get("input")
        kept["input"] = given if isinstance(given, str) else self.items(given)
        if isinstance(body.get("instructions"), str):
            kept["instructions"] = body["instructions"]
        return kept

    def items(self, items: Any) -> Any:
        """Items of a Responses input or output."""
        return self._each(items, self._item)

    def anthropic(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """For `parse(Prompted, …)`."""
        kept = {
            key: body[key] for key in ("system", "tool_choice", "thinking", "cache_control") if key in body
        }
        kept["model"] = _model(body)
        kept["messages"] = self._each(body.get("messages"), self._anthropic_message)
        if body.get("tools"):
            kept["tools"] = self._each(body["tools"], self._anthropic_tool)
        return kept

    def _common(self, body: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {"model": _model(body)}
        if isinstance(body.get("enable_thinking"), bool):
            kept["enable_thinking"] = body["enable_thinking"]
        variables = body.get("chat_template_kwargs")
        if isinstance(variables, Mapping):
            kept["chat_template_kwargs"] = {k: v for k, v in variables.items() if k not in _RESERVED}
        return kept

    def _each(self, values: Any, change: Callable[[Any], Any]) -> Any:
        return [change(value) for value in values] if isinstance(values, list | tuple) else values

    def _chat_message(self, message: Any) -> Any:
        if not isinstance(message, Mapping):
            return message
        role = message.get("role")
        kept: dict[str, Any] = {"role": self._role(role)}
        for key in ("name", "tool_call_id", "cache_control"):
            if message.get(key) is not None:
                kept[key] = message[key]
        calls = message.get("tool_calls") or _legacy_call(message)
        if calls and kept["role"] == "assistant":
            kept["tool_calls"] = self._each(calls, _chat_call)
        content = self._content(message.get("content"))
        if content is not None or "tool_calls" not in kept:
            kept["content"] = "" if content is None else content
        return kept

    def _role(self, role: Any) -> str:
        if role in _ROLES:
            return str(role)
        self._note(f"the role {str(role)[:40]!r} is read as {'tool' if role == 'function' else 'user'}")
        return "tool" if role == "function" else "user"

    def _content(self, content: Any) -> Any:
        if content is None or isinstance(content, str):
            return content
        if isinstance(content, list | tuple):
            return [self._part(part) for part in content]
        return json.dumps(content, ensure_ascii=False, default=str)

    def _part(self, part: Any) -> dict[str, Any]:
        if isinstance(part, str):
            return {"type": "text", "text": part}
        if not isinstance(part, Mapping):
            return {"type": "text", "text": str(part)}
        mark = {"cache_control": part["cache_control"]} if part.get("cache_control") is not None else {}
        kind = part.get("type", "text")
        said = part.get("refusal") if kind == "refusal" else part.get("text")
        if isinstance(said, str) and kind in (*_TEXTS, "refusal", "thinking", "reasoning"):
            return {"type": "text", "text": said} | mark
        return {"type": "text", "text": self._placeholder(part)} | mark

    def _item(self, item: Any) -> Any:
        if not isinstance(item, Mapping):
            return item
        kind = item.get("type", "message")
        if kind == "message":
            return {"type": "message", "role": self._role(item.get("role")), **self._said(item, "content")}
        if kind == "function_call_output":
            return {"type": kind, "call_id": str(item.get("call_id") or "?"), **self._said(item, "output")}
        if kind in _KNOWN_ITEMS:
            return dict(item)
        return {"type": "message", "role": "assistant", "content": self._placeholder(item)}

    def _said(self, item: Mapping[str, Any], key: str) -> dict[str, Any]:
        content = self._content(item.get(key))
        mark = {"cache_control": item["cache_control"]} if item.get("cache_control") is not None else {}
        return {key: "" if content is None else content} | mark

    def _anthropic_message(self, message: Any) -> Any:
        if not isinstance(message, Mapping) or not isinstance(message.get("content"), list):
            return message
        return dict(message) | {"content": [self._block(block) for block in message["content"]]}

    def _block(self, block: Any) -> Any:
        if not isinstance(block, Mapping):
            return block
        if block.get("type") not in _ANTHROPIC_BLOCKS:
            return self._part(block)
        if block["type"] == "tool_result" and isinstance(block.get("content"), list):
            return dict(block) | {"content": [self._part(part) for part in block["content"]]}
        return block

    def _anthropic_tool(self, tool: Any) -> Any:
        if not isinstance(tool, Mapping) or "input_schema" in tool:
            return tool
        self._note("tools that the vendor runs itself are read as functions")
        rest = {key: value for key, value in tool.items() if key not in ("cache_control", "name")}
        name = str(tool.get("name") or tool.get("type") or "tool")
        mark = {"cache_control": tool["cache_control"]} if "cache_control" in tool else {}
        return {"name": name, "input_schema": rest} | mark

    def _placeholder(self, thing: Mapping[str, Any]) -> str:
        kind = str(thing.get("type") or next(iter(thing), "part"))
        shown = next((name for name in ("image", "audio", "video", "file") if name in kind), kind[:40])
        self._note(f"{shown} parts count as a short text that stands for them")
        bare = {key: value for key, value in thing.items() if key not in ("cache_control", "id")}
        return f"<{shown} {blake2b(as_sent(bare), digest_size=8).hexdigest()}>"

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def as_sent(value: Any) -> bytes:
    """Compact JSON in the order of its own keys, lone surrogates and large numbers included."""
    try:
        return orjson.dumps(value)
    except TypeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
        return text.encode("utf-8", "surrogatepass")


def _model(body: Mapping[str, Any]) -> str:
    return str(body.get("model") or "unknown")[:1000]


def _legacy_call(message: Mapping[str, Any]) -> list[Any]:
    call = message.get("function_call")
    return [{"function": call}] if isinstance(call, Mapping) else []


def _chat_call(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    arguments = function.get("arguments")
    if not isinstance(arguments, str):
        arguments = json.dumps({} if arguments is None else arguments, ensure_ascii=False, default=str)
    named = {"name": str(function.get("name") or "?")[:256], "arguments": arguments}
    return {"id": str(call.get("id") or ""), "type": "function", "function": named}
