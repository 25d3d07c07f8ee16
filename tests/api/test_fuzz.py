"""No body, however strange, is answered with a server error."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotprefix.api.chat_request import ChatRequest
from hotprefix.api.completion_request import CompletionRequest
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import HELLO, in_process

PATHS = ("/v1/chat/completions", "/v1/completions", "/tokenize")
NAMES = sorted({*ChatRequest.model_fields, *CompletionRequest.model_fields})

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text()
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
words = st.sampled_from(["user", "assistant", "tool", "text", "function", "json_schema", "auto", "f", ""])
likely = words | st.integers(-2, 3) | anything
parts = st.lists(st.dictionaries(words, likely, max_size=3), max_size=2)
message = st.fixed_dictionaries(
    {}, optional={"role": likely, "content": likely | parts, "tool_calls": likely, "name": likely}
)
bodies = st.fixed_dictionaries(
    {"model": st.just("scripted")},
    optional={name: likely for name in NAMES if name not in {"model", "messages", "prompt"}}
    | {
        "messages": st.just(HELLO) | st.lists(message, max_size=3) | anything,
        "prompt": st.just("abc") | st.lists(likely, max_size=3) | anything,
        "tools": st.lists(st.dictionaries(words, likely, max_size=3), max_size=2) | anything,
        "max_tokens": st.integers(1, 20),
    },
)


async def post(path: str, body: bytes) -> tuple[int, str]:
    # An answer without an end token only ends with max_tokens, so the engine's text is short.
    async with in_process(ScriptedEngine(lambda prompt: "ok", context_length=300)) as server:
        response = await server.client.post(path, content=body)
        assert server.engine.in_flight == 0
        assert response.headers["x-request-id"]
        return response.status_code, response.text


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=bodies)
def test_strange_fields(path: str, body: dict[str, Any]) -> None:
    body = body | {"ignore_eos": None}
    try:
        raw = orjson.dumps(body, option=orjson.OPT_NON_STR_KEYS)
    except (TypeError, ValueError):  # integers beyond 64 bits, lone surrogates: not JSON to orjson
        raw = json.dumps(body).encode()
    status, text = asyncio.run(post(path, raw))
    assert status < 500, text
    if status >= 400:
        assert set(orjson.loads(text)["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=60, deadline=None)
@given(raw=st.binary(max_size=200))
def test_strange_bytes(path: str, raw: bytes) -> None:
    status, text = asyncio.run(post(path, raw))
    assert status == 400, text
