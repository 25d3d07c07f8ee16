"""T32 for the Responses API: the four classes of tokens are those of every other dialect, streamed or not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.api.anthropic.support import COMPATIBLE, ask
from tests.api.dashscope.support import generate
from tests.api.responses.support import DASHSCOPE, OPENAI, SESSION, respond, stream
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process

pytestmark = pytest.mark.anyio

RULES, QUESTION = "s" * 1100, "q"
Classes = tuple[int, int, int, int]
"""Computed, read, written, drawn."""


@pytest.fixture
async def server(anyio_backend: str) -> AsyncIterator[Server]:
    engine = ScriptedEngine(context_length=16384)
    async with in_process(engine, profile="dashscope-2026-03") as server:
        yield server


def chat_classes(
    usage: dict[str, Any], total: str = "prompt_tokens", drawn: str = "completion_tokens"
) -> Classes:
    details = usage["prompt_tokens_details"]
    read, written = details["cached_tokens"], details.get("cache_creation_input_tokens", 0)
    return usage[total] - read - written, read, written, usage[drawn]


def responses_classes(usage: dict[str, Any]) -> Classes:
    (details,) = usage["x_details"]
    assert details["input_tokens"] == usage["input_tokens"]
    found = chat_classes(details, "input_tokens", "output_tokens")
    assert (usage["input_tokens_details"]["cached_tokens"], usage["output_tokens"]) == (found[1], found[3])
    return found


@pytest.mark.parametrize("headers", [SESSION, {}])
async def test_t32_a_stream_bills_what_a_whole_response_bills(
    server: Server, headers: dict[str, str]
) -> None:
    for path in (DASHSCOPE, OPENAI):
        fields: dict[str, Any] = {"input": QUESTION, "instructions": RULES}
        for _ in range(2):
            asked = fields | {"headers": headers}
            whole = (await respond(server, path, key=f"whole {path}", **asked))["usage"]
            events = await stream(server, path, key=f"stream {path}", **asked)
            assert events[-1]["response"]["usage"] == whole
            assert all(event["response"]["usage"] is None for event in events[:2])


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("marked", [True, False])
async def test_t32_four_shapes_have_the_same_classes(server: Server, marked: bool, streamed: bool) -> None:
    """A session's marker is on the last item: that is an explicit one on the last block of the others."""
    mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
    question = [{"type": "text", "text": QUESTION, **mark}]
    talk = [{"role": "system", "content": RULES}, {"role": "user", "content": question}]

    async def chat() -> Classes:
        headers = {"authorization": "Bearer chat"}
        body = {"model": "scripted", "messages": talk}
        response = await server.client.post(
            "/compatible-mode/v1/chat/completions", json=body, headers=headers
        )
        return chat_classes(response.json()["usage"])

    async def native() -> Classes:
        response = await generate(server, messages=talk, headers={"authorization": "Bearer native"})
        return chat_classes(response.json()["usage"], "input_tokens", "output_tokens")

    async def messages() -> Classes:
        headers = {"authorization": "Bearer messages"}
        response = await ask(server, path=COMPATIBLE, system=RULES, messages=talk[1:], headers=headers)
        usage = response.json()["usage"]
        read, written = usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"]
        return usage["input_tokens"], read, written, usage["output_tokens"]

    async def responses() -> Classes:
        fields: dict[str, Any] = {"input": QUESTION, "instructions": RULES, "key": "responses"}
        fields["headers"] = SESSION if marked else {}
        if not streamed:
            return responses_classes((await respond(server, DASHSCOPE, **fields))["usage"])
        return responses_classes((await stream(server, DASHSCOPE, **fields))[-1]["response"]["usage"])

    for turn in range(2):
        found = {shape.__name__: await shape() for shape in (chat, native, messages, responses)}
        assert len(set(found.values())) == 1, found
        _, read, written, drawn = found["responses"]
        assert drawn == len(QUESTION) + 1
        if marked:
            assert (read > 1024, written > 1024) == ((False, True), (True, False))[turn]
        else:
            assert (read > 0, written) == (True, 0)
