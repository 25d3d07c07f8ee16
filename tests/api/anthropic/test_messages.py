"""Shapes, events and errors of the Messages API."""

from __future__ import annotations

from typing import Any

import pytest

from hotprefix.base.errors import Overloaded, Unavailable
from hotprefix.engine.request import GrammarKind
from tests.api.anthropic.support import (
    CALL,
    COMPATIBLE,
    COUNT,
    MESSAGES,
    WEATHER,
    ask,
    events,
    taken_apart,
    text,
    user,
)
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import HELLO, Server, in_process

pytestmark = pytest.mark.anyio

SAID = HELLO[0]["content"]


@pytest.mark.parametrize("path", [MESSAGES, "/apps/anthropic/v1/messages"])
async def test_a_message(server: Server, path: str) -> None:
    response = await ask(server, path=path)
    body = response.json()
    prompt, drawn = len(server.engine.seen[0].prompt_ids), len(SAID.encode()) + 1
    assert body.pop("id").startswith("msg_")
    assert body == {
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [{"type": "text", "text": SAID}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": prompt,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
            "output_tokens": drawn,
            "service_tier": "standard",
        },
    }
    assert response.headers["request-id"] == response.headers["x-request-id"]


async def test_the_events_of_a_stream(server: Server) -> None:
    server.engine.reply = lambda prompt: "Hi"
    shown = await events(server)
    start = shown[0]["message"]
    prompt = len(server.engine.seen[0].prompt_ids)
    assert (start["content"], start["stop_reason"], start["role"]) == ([], None, "assistant")
    assert (start["usage"]["input_tokens"], start["usage"]["output_tokens"]) == (prompt, 0)
    delta = {"type": "content_block_delta", "index": 0}
    assert shown[1:] == [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        delta | {"delta": {"type": "text_delta", "text": "H"}},
        delta | {"delta": {"type": "text_delta", "text": "i"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {
                "input_tokens": prompt,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": 3,
            },
        },
        {"type": "message_stop"},
    ]


@pytest.mark.parametrize(
    ("fields", "reason", "sequence"),
    [
        ({}, "end_turn", None),
        ({"max_tokens": 3}, "max_tokens", None),
        ({"stop_sequences": ["zzz", "llo"]}, "stop_sequence", "llo"),
    ],
)
async def test_stop_reasons(server: Server, fields: Any, reason: str, sequence: str | None) -> None:
    body = (await ask(server, **fields)).json()
    assert (body["stop_reason"], body["stop_sequence"]) == (reason, sequence)
    assert (await events(server, **fields))[-2]["delta"] == {"stop_reason": reason, "stop_sequence": sequence}


async def test_an_answer_that_fills_the_context_is_cut_there(server: Server) -> None:
    server.engine.reply = lambda prompt: "x" * 100
    body = (await ask(server, max_tokens=100_000)).json()
    assert body["stop_reason"] == "end_turn"
    assert server.engine.seen[0].sampling.max_tokens is None
    response = await ask(server, messages=[user(text("x" * 5000))])
    assert response.status_code == 400
    assert "4095" in response.json()["error"]["message"]


@pytest.mark.parametrize("stream", [True, False])
async def test_tool_use(server: Server, stream: bool) -> None:
    server.engine.reply = lambda prompt: f"Well. {CALL}{CALL}"
    if not stream:
        body = (await ask(server, tools=[WEATHER])).json()
        blocks, reason = body["content"], body["stop_reason"]
    else:
        shown = await events(server, tools=[WEATHER])
        starts = [event["content_block"] for event in shown if event["type"] == "content_block_start"]
        assert [block["input"] for block in starts[1:]] == [{}, {}]
        parts = [event for event in shown if event["type"] == "content_block_delta"]
        assert {event["delta"]["type"] for event in parts if event["index"] > 0} == {"input_json_delta"}
        for number in (1, 2):
            pieces = [event["delta"]["partial_json"] for event in parts if event["index"] == number]
            assert len(pieces) > 5
            assert "".join(pieces) == '{"city": "Paris"}'
        stops = [event["index"] for event in shown if event["type"] == "content_block_stop"]
        assert stops == [0, 1, 2]
        words = "".join(event["delta"]["text"] for event in parts if event["index"] == 0)
        blocks = [text(words), *(block | {"input": {"city": "Paris"}} for block in starts[1:])]
        reason = shown[-2]["delta"]["stop_reason"]
    assert reason == "tool_use"
    assert blocks[0] == text("Well.")
    for block in blocks[1:]:
        assert block.pop("id").startswith("toolu_")
        assert block == {"type": "tool_use", "name": "weather", "input": {"city": "Paris"}}
    assert len(blocks) == 3


@pytest.mark.parametrize(
    ("arguments", "most", "told"),
    [
        ('{"city": "Paris", "day": "Mon', None, {"city": "Paris"}),
        ('{"city": "Paris", "day": "Monday"}', 60, {"city": "Paris"}),
        ('{"city": "Paris",}}', None, {"INVALID_JSON": '{"city": "Paris",}'}),
    ],
)
async def test_input_that_is_no_whole_json(
    server: Server, arguments: str, most: int | None, told: dict[str, str]
) -> None:
    server.engine.reply = lambda prompt: f'<tool_call>{{"name": "weather", "arguments": {arguments}'
    body = (await ask(server, tools=[WEATHER], max_tokens=most or 500)).json()
    (block,) = body["content"]
    assert block["input"] == told
    assert body["stop_reason"] == ("max_tokens" if most else "tool_use")


@pytest.mark.parametrize(
    ("choice", "grammar", "calls"),
    [
        ({"type": "auto"}, None, 2),
        ({"type": "auto", "disable_parallel_tool_use": True}, None, 1),
        ({"type": "any"}, GrammarKind.LARK, 2),
        ({"type": "tool", "name": "weather"}, GrammarKind.LARK, 2),
        ({"type": "none"}, None, 0),
    ],
)
async def test_tool_choice(server: Server, choice: Any, grammar: GrammarKind | None, calls: int) -> None:
    server.engine.reply = lambda prompt: f"Well. {CALL}{CALL}"
    body = (await ask(server, tools=[WEATHER], tool_choice=choice)).json()
    asked = server.engine.seen[0].sampling.grammar
    assert (asked.kind if asked else None) == grammar
    assert [block["type"] for block in body["content"]] == ["text"] + ["tool_use"] * calls
    # Whatever the choice is, the prompt is the same.
    await ask(server, tools=[WEATHER])
    assert server.engine.seen[0].prompt_ids == server.engine.seen[1].prompt_ids


async def test_a_schema_for_the_answer(server: Server) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    await ask(server, output_config={"format": {"type": "json_schema", "schema": schema}, "effort": "low"})
    grammar = server.engine.seen[0].sampling.grammar
    assert grammar is not None
    assert grammar.kind is GrammarKind.JSON_SCHEMA


async def test_a_conversation_becomes_the_models_prompt(server: Server) -> None:
    messages = [
        user(text("Weather?")),
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                text("Let me see."),
                {"type": "tool_use", "id": "t1", "name": "weather", "input": {}},
            ],
        },
        user(
            {
                "type": "tool_result",
                "tool_use_id": "t1",
                "content": [text("sun"), text("ny")],
                "is_error": False,
            },
            text("And?"),
        ),
    ]
    response = await ask(server, system=[text("Be "), text("brief.")], messages=messages, tools=[WEATHER])
    assert response.status_code == 200, response.text
    prompt = server.engine.model.tokenizer.decode(server.engine.seen[0].prompt_ids)
    head, rest = prompt.split("\n", 1)
    assert '"parameters"' in head
    assert rest == (
        "system: Be brief.\nuser: Weather?\nassistant: Let me see.\ntool: sunny\nuser: And?\nassistant: "
    )


async def test_counting_says_what_an_answer_is_billed_for(server: Server) -> None:
    fields = {"system": "Be brief.", "tools": [WEATHER]}
    usage = (await ask(server, **fields)).json()["usage"]
    response = await ask(server, path=COUNT, **fields)
    assert response.json() == {"input_tokens": usage["input_tokens"]}
    assert len(server.engine.seen) == 1
    assert (await ask(server, path=COMPATIBLE + "/count_tokens", **fields)).json() == response.json()


async def test_what_has_no_effect_is_told(server: Server) -> None:
    response = await ask(
        server,
        thinking={"type": "enabled", "budget_tokens": 1024},
        metadata={"user_id": "u"},
        service_tier="auto",
        speed="fast",
        output_config={"effort": "low"},
    )
    assert response.headers["x-hotprefix-ignored"] == "speed, output_config.effort"
    assert "thinking" in response.headers["x-hotprefix-warning"]


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"temperature": 1.5}, "temperature"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": ""}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"messages": [user({"type": "image", "source": {}})]}, "messages[0].content[0]"),
        ({"messages": [user({"type": "document", "source": {}})]}, "messages[0].content[0]"),
        ({"messages": [user({"text": "x"})]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [7]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [None]}]}, "messages[0].content[0]"),
        ({"messages": [user(text(""))]}, "messages[0].content[0].text"),
        ({"messages": [user(text("", "5m"))]}, "messages[0].content[0].text"),
        ({"system": [text("", "5m")]}, "system[0].text"),
        ({"system": [{"type": "image"}]}, "system[0]"),
        (
            {"messages": [user({"type": "tool_use", "id": "t", "name": "f", "input": {}})]},
            "messages[0].content[0]",
        ),
        (
            {"messages": [user({"type": "tool_result", "tool_use_id": "t", "content": "x"})]},
            "messages[0].content[0].tool_use_id",
        ),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
        ({"tools": [WEATHER, WEATHER]}, "tools"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "x"}}, "tool_choice"),
        ({"mcp_servers": [{}]}, "mcp_servers"),
        ({"stop_sequences": [""]}, "stop_sequences[0]"),
    ],
)
async def test_bad_requests(server: Server, fields: Any, place: str) -> None:
    response = await ask(server, **fields)
    body = response.json()
    assert response.status_code == 400
    assert (body["type"], body["error"]["type"]) == ("error", "invalid_request_error")
    assert body["request_id"] == response.headers["request-id"]
    assert f"'{place}'" in body["error"]["message"]


@pytest.mark.parametrize("content", ["The hat", [text("The "), text("hat")]])
async def test_an_answer_that_was_begun_is_gone_on_with(server: Server, content: Any) -> None:
    server.engine.reply = lambda prompt: " is red."
    messages = [*HELLO, {"role": "assistant", "content": content}]
    body = (await ask(server, messages=messages)).json()
    prompt = bytes(server.engine.seen[0].prompt_ids).decode()
    assert prompt == f"user: {SAID}\nassistant: The hat"
    assert body["content"] == [text(" is red.")]
    asked = {"model": "scripted", "messages": messages}
    counted = await server.client.post(f"{MESSAGES}/count_tokens", json=asked)
    assert counted.json()["input_tokens"] == body["usage"]["input_tokens"] == len(prompt.encode())


@pytest.mark.parametrize(
    ("content", "fields", "complaint"),
    [
        ("The hat ", {}, "final assistant content cannot end with trailing whitespace"),
        ("{", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "beside 'thinking'"),
        ("{", {"tools": [WEATHER], "tool_choice": {"type": "any"}}, "beside 'tool_choice'"),
        (
            "{",
            {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
            "beside 'output_config.format'",
        ),
        ([{"type": "thinking", "thinking": "Hm.", "signature": "x"}], {}, "has text and nothing else"),
        (
            [text("I look."), {"type": "tool_use", "id": "t", "name": "weather", "input": {}}],
            {"tools": [WEATHER]},
            "the results of tools belong into a user message",
        ),
    ],
)
async def test_beginnings_that_nothing_can_go_on_from(
    server: Server, content: Any, fields: dict[str, Any], complaint: str
) -> None:
    response = await ask(server, messages=[*HELLO, {"role": "assistant", "content": content}], **fields)
    assert response.status_code == 400
    assert complaint in response.json()["error"]["message"]


async def test_types_and_statuses(server: Server) -> None:
    async def told(**fields: Any) -> tuple[int, str]:
        response = await ask(server, **fields)
        return response.status_code, response.json()["error"]["type"]

    assert await told(model="nope") == (404, "not_found_error")
    assert await told(path="/v1/messages/nothing") == (404, "not_found_error")
    for refusal, status, kind in (
        (Overloaded("full"), 529, "overloaded_error"),
        (Unavailable("later"), 529, "overloaded_error"),
        (RuntimeError("secret"), 500, "api_error"),
    ):
        server.engine.refusal = refusal
        assert await told() == (status, kind)


async def test_too_large(anyio_backend: str) -> None:
    from hotprefix.api.settings import ApiSettings

    async with in_process(ScriptedEngine(), ApiSettings(body_limit=100)) as small:
        response = await ask(small, messages=[user(text("x" * 200))])
        assert (response.status_code, response.json()["error"]["type"]) == (413, "request_too_large")


async def test_an_error_in_a_stream(server: Server) -> None:
    server.engine.fail_after = 2
    response = await ask(server, stream=True)
    last = taken_apart(response.text)[-1]
    assert (last["type"], last["error"]["type"]) == ("error", "api_error")
    assert last["request_id"] == response.headers["request-id"]
    assert "secret" not in response.text
