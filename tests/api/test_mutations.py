"""Good bodies of every dialect with one value replaced: what is wrong is never the server's fault."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import in_process

pytestmark = pytest.mark.anyio

VALUES: tuple[Any, ...] = (None, 7, [], {})
MARK = {"type": "ephemeral", "ttl": "5m"}
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
FUNCTION = {"name": "f", "description": "d", "parameters": SCHEMA}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGES = [
    {"role": "system", "content": [{"type": "text", "text": "a", "cache_control": MARK}]},
    {"role": "user", "content": "b", "name": "n"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "content": "c", "tool_call_id": "c"},
    {"role": "user", "content": [{"type": "text", "text": "d"}]},
]
CHAT = {
    "model": "scripted",
    "messages": MESSAGES,
    "tools": [{"type": "function", "function": FUNCTION}],
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
    "logit_bias": {"1": 1},
    "stop": ["z"],
    "stream_options": {"include_usage": True},
    "chat_template_kwargs": {"k": 1},
    "kv_strategy": {"type": "dynamic"},
    "max_tokens": 3,
}
NATIVE = {
    "model": "scripted",
    "input": {"messages": MESSAGES, "prompt": "p", "history": [{"user": "u", "bot": "b"}]},
    "parameters": {
        "tools": CHAT["tools"],
        "tool_choice": CHAT["tool_choice"],
        "stop": [[1, 2], [3]],
        "result_format": "message",
        "max_tokens": 3,
    },
}
RESPONSES = {
    "model": "scripted",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "a"}]},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "b"}]},
        {"role": "user", "content": [{"type": "refusal", "refusal": "r"}]},
    ],
    "tools": [{"type": "function", "name": "f", "parameters": SCHEMA}],
    "tool_choice": {"type": "function", "name": "f"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
    "include": ["x"],
    "metadata": {"k": "v"},
    "reasoning": {"effort": None},
    "max_output_tokens": 20,
}
BLOCKS = [
    {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "r"}]},
    {"type": "text", "text": "a", "cache_control": MARK},
]
ANTHROPIC = {
    "model": "scripted",
    "max_tokens": 3,
    "system": [{"type": "text", "text": "s", "cache_control": MARK}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "u"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {"a": "b"}}]},
        {"role": "user", "content": BLOCKS},
    ],
    "tools": [{"type": "custom", "name": "f", "input_schema": SCHEMA, "cache_control": MARK}],
    "tool_choice": {"type": "tool", "name": "f"},
    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
    "thinking": {"type": "enabled", "budget_tokens": 1024},
    "stop_sequences": ["z"],
    "metadata": {"user_id": "u"},
}
CACHE = {"name": "n", "ttl": 60, "messages": MESSAGES[:1], "tools": CHAT["tools"]}
BODIES = {
    "/v1/chat/completions": CHAT,
    "/tokenize": {key: CHAT[key] for key in ("messages", "tools", "chat_template_kwargs")},
    "/v1/caches": CACHE,
    "/v1/responses": RESPONSES,
    "/compatible-mode/v1/responses": RESPONSES,
    "/v1/messages": ANTHROPIC,
    "/apps/anthropic/v1/messages": ANTHROPIC,
    "/api/v1/services/aigc/text-generation/generation": NATIVE,
}


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place below the top."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def replaced(body: dict[str, Any], path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    changed: Any = copy.deepcopy(body)
    box = changed
    for key in path[:-1]:
        box = box[key]
    box[path[-1]] = value
    result: dict[str, Any] = changed
    return result


@pytest.mark.parametrize("path", BODIES)
async def test_one_odd_value_is_never_a_server_error(path: str) -> None:
    body: dict[str, Any] = BODIES[path]
    async with in_process(ScriptedEngine(lambda prompt: "ok")) as server:
        whole = await server.client.post(path, json=body)
        assert whole.status_code in (200, 201), whole.text
        for place in places(body):
            for value in VALUES:
                raw = orjson.dumps(replaced(body, place, value))
                response = await server.client.post(path, content=raw)
                assert response.status_code < 500, (place, value, response.text)
        assert server.engine.in_flight == 0
        assert server.inflight.count == 0
