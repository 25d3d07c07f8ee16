from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from hotprefix.engine.request import GrammarKind
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import HELLO, Server, in_process

pytestmark = pytest.mark.anyio

WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
CLOCK = {"type": "function", "function": {"name": "clock"}}
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>'
CALL_2 = '<tool_call>{"name": "clock", "arguments": {}}</tool_call>'


def folded(chunks: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """Puts a stream together as client libraries do."""
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for piece in chunk["choices"]:
            whole = choices.setdefault(
                piece["index"], {"content": "", "calls": [], "logprobs": [], "roles": [], "reasons": []}
            )
            delta = piece["delta"]
            whole["content"] += delta.get("content") or ""
            whole["roles"] += [delta["role"]] if "role" in delta else []
            for call in delta.get("tool_calls", ()):
                if "id" in call:
                    assert call["index"] == len(whole["calls"])
                    whole["calls"].append(dict(call["function"]))
                else:
                    whole["calls"][call["index"]]["arguments"] += call["function"]["arguments"]
            if piece["logprobs"]:
                whole["logprobs"] += piece["logprobs"]["content"]
            whole["reasons"] += [piece["finish_reason"]] if piece["finish_reason"] else []
    return choices


async def test_answers_in_openais_shape(server: Server) -> None:
    response = await server.chat()
    body = response.json()
    assert response.status_code == 200
    assert body["object"] == "chat.completion"
    assert body["id"].startswith("chatcmpl-")
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": HELLO[0]["content"], "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    prompt = len(server.engine.seen[0].prompt_ids)
    completion = len(HELLO[0]["content"].encode()) + 1
    assert body["usage"] == {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": prompt // 2},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"n": 3},
        {"max_tokens": 4},
        {"max_completion_tokens": 4},
        {"stop": "wö"},
        {"stop": ["x", "ll"]},
        {"logprobs": True},
        {"logprobs": True, "top_logprobs": 3, "n": 2},
    ],
    ids=str,
)
async def test_stream_says_what_the_whole_answer_says(server: Server, fields: dict[str, Any]) -> None:
    whole = (await server.chat(**fields)).json()
    chunks = await server.chunks(**fields)
    streamed = folded(chunks)
    assert len(streamed) == fields.get("n", 1)
    for choice in whole["choices"]:
        mine = streamed[choice["index"]]
        assert mine["content"] == choice["message"]["content"]
        assert mine["logprobs"] == (choice["logprobs"] or {"content": []})["content"]
        assert mine["reasons"] == [choice["finish_reason"]]
        assert mine["roles"] == ["assistant"]
    assert all("usage" not in chunk for chunk in chunks)
    assert len({chunk["id"] for chunk in chunks}) == 1


async def test_usage_comes_last_and_is_null_before(server: Server) -> None:
    whole = (await server.chat()).json()
    *chunks, last = await server.chunks(stream_options={"include_usage": True})
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last["choices"] == []
    assert last["usage"] == whole["usage"]


async def test_first_event_carries_role_and_first_token_together(server: Server) -> None:
    sent: list[bytes] = []
    body = json.dumps({"model": "scripted", "messages": HELLO, "stream": True}).encode()
    messages = iter([{"type": "http.request", "body": body}])

    async def receive() -> Any:
        message = next(messages, None)
        return message or await asyncio.get_running_loop().create_future()

    async def send(message: Any) -> None:
        if message.get("body"):
            sent.append(message["body"])

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": [],
        "query_string": b"",
    }
    await server.app(scope, receive, send)
    assert b'"role":"assistant"' in sent[0]
    assert b'"content":"H"' in sent[0]


async def test_logprobs_have_bytes_and_alternatives(server: Server) -> None:
    body = (await server.chat(logprobs=True, top_logprobs=2, max_tokens=1)).json()
    assert body["choices"][0]["logprobs"]["content"] == [
        {
            "token": "H",
            "logprob": -0.5,
            "bytes": [72],
            "top_logprobs": [
                {"token": "H", "logprob": -0.5, "bytes": [72]},
                {"token": "I", "logprob": -1.5, "bytes": [73]},
            ],
        }
    ]


async def test_sampling_reaches_the_engine(server: Server) -> None:
    await server.chat(
        temperature=0,
        top_p=0.5,
        top_k=-1,
        min_p=0.1,
        repetition_penalty=1.1,
        presence_penalty=-1,
        frequency_penalty=1,
        seed=-1,
        logit_bias={"7": -100},
        max_tokens=3,
        stop=["a", "a"],
    )
    sampling = server.engine.seen[0].sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p) == (0, 0.5, 0, 0.1)
    assert (sampling.repetition_penalty, sampling.presence_penalty, sampling.frequency_penalty) == (
        1.1,
        -1,
        1,
    )
    assert (sampling.seed, sampling.logit_bias, sampling.max_tokens) == (2**64 - 1, {7: -100.0}, 3)
    assert sampling.stop == ("a",)
    await server.chat(max_tokens=None)
    assert server.engine.seen[1].sampling.max_tokens is None


async def test_text_parts_are_joined_and_developer_is_system(server: Server) -> None:
    parts = [
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "b"},
    ]
    await server.chat(
        messages=[{"role": "developer", "content": "rules"}, {"role": "user", "content": parts}]
    )
    prompt = server.engine.model.tokenizer.decode(server.engine.seen[0].prompt_ids)
    assert prompt == "system: rules\nuser: ab\nassistant: "


@pytest.mark.parametrize(
    ("fields", "kind", "source"),
    [
        ({"response_format": {"type": "text"}}, None, None),
        ({"response_format": {"type": "json_object"}}, GrammarKind.JSON_OBJECT, ""),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "x", "schema": {"type": "null"}},
                }
            },
            GrammarKind.JSON_SCHEMA,
            '{"type":"null"}',
        ),
    ],
)
async def test_response_format_is_a_grammar(
    server: Server, fields: dict[str, Any], kind: GrammarKind | None, source: str | None
) -> None:
    assert (await server.chat(**fields)).status_code == 200
    grammar = server.engine.seen[0].sampling.grammar
    assert (grammar and grammar.kind, grammar and grammar.source) == (kind, source)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
async def test_a_required_call_is_a_grammar(server: Server, choice: Any) -> None:
    await server.chat(tools=[WEATHER, CLOCK], tool_choice=choice)
    grammar = server.engine.seen[0].sampling.grammar
    assert grammar is not None
    assert grammar.kind is GrammarKind.LARK
    assert "weather" in grammar.source
    assert ("clock" in grammar.source) == (choice == "required")


async def test_no_tool_is_shown_with_choice_none(server: Server) -> None:
    server.engine.reply = lambda prompt: CALL
    body = (await server.chat(tools=[WEATHER], tool_choice="none")).json()
    assert body["choices"][0]["message"]["content"] == CALL
    assert b"weather" not in bytes(server.engine.seen[0].prompt_ids)


async def test_arguments_stream_as_they_are_drawn() -> None:
    async with in_process(ScriptedEngine(lambda prompt: f"Sure. {CALL}")) as server:
        chunks = await server.chunks(tools=[WEATHER])
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        parts = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
        assert parts[0]["function"] == {"name": "weather", "arguments": ""}
        assert len(parts) > 5
        assert all(set(part) == {"index", "function"} for part in parts[1:])
        assert "".join(part["function"]["arguments"] for part in parts) == '{"city": "Paris"}'
        assert not any("<" in (delta.get("content") or "") for delta in deltas)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_that_is_cut_short_is_shown_as_far_as_it_goes(stream: bool) -> None:
    async with in_process(ScriptedEngine(lambda prompt: CALL)) as server:
        asked = {"tools": [WEATHER], "max_tokens": CALL.index("ris")}
        if stream:
            whole = folded(await server.chunks(**asked))[0]
            call, reason = whole["calls"][0], whole["reasons"][0]
        else:
            choice = (await server.chat(**asked)).json()["choices"][0]
            call, reason = choice["message"]["tool_calls"][0]["function"], choice["finish_reason"]
        assert call == {"name": "weather", "arguments": '{"city": "Pa'}
        assert reason == "length"


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        (CALL, None, ["weather"]),
        (f"Let me see. {CALL}\n{CALL_2}", "Let me see.", ["weather", "clock"]),
        ("No tool needed <b>.", "No tool needed <b>.", []),
        ("<tool_call>nonsense</tool_call>", "<tool_call>nonsense</tool_call>", []),
    ],
)
async def test_tool_calls_are_parsed_back(text: str, content: str | None, calls: list[str]) -> None:
    async with in_process(ScriptedEngine(lambda prompt: text)) as server:
        choice = (await server.chat(tools=[WEATHER, CLOCK])).json()["choices"][0]
        mine = folded(await server.chunks(tools=[WEATHER, CLOCK]))[0]
    message = choice["message"]
    assert message["content"] == content
    assert mine["content"] == (content or "")
    found = [call["function"] for call in message.get("tool_calls", [])]
    assert [call["name"] for call in found] == calls
    assert mine["calls"] == found
    assert choice["finish_reason"] == ("tool_calls" if calls else "stop")
    assert mine["reasons"] == [choice["finish_reason"]]
    if calls:
        assert json.loads(found[0]["arguments"]) == {"city": "Paris"}
        assert message["tool_calls"][0]["id"].startswith("call_")


async def test_one_call_only_without_parallel_calls(server: Server) -> None:
    server.engine.reply = lambda prompt: CALL + CALL_2
    body = (await server.chat(tools=[WEATHER, CLOCK], parallel_tool_calls=False)).json()
    assert [c["function"]["name"] for c in body["choices"][0]["message"]["tool_calls"]] == ["weather"]


async def test_a_conversation_with_calls_is_accepted(server: Server) -> None:
    messages = [
        *HELLO,
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c",
                    "type": "function",
                    "function": {"name": "weather", "arguments": '{"city":"Paris"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c", "content": "sunny"},
    ]
    assert (await server.chat(messages=messages, tools=[WEATHER])).status_code == 200


async def test_unknown_fields_are_named_and_known_ones_accepted(server: Server) -> None:
    response = await server.chat(
        user="u", metadata={"a": "b"}, store=False, service_tier="auto", foo=1, **{"bär,": 2}
    )
    assert response.status_code == 200
    assert response.headers["x-hotprefix-ignored"] == "foo, b\\xe4r?"
    assert "x-hotprefix-ignored" not in (await server.chat()).headers


async def test_template_variables(server: Server) -> None:
    await server.chat(chat_template_kwargs={"a": 1}, enable_thinking=False)
    assert b'variables: {"a": 1, "enable_thinking": false}' in bytes(server.engine.seen[0].prompt_ids)


async def test_aliases_and_the_compatible_path(server: Server) -> None:
    body = {"model": "also-scripted", "messages": HELLO}
    response = await server.client.post("/compatible-mode/v1/chat/completions", json=body)
    assert response.json()["model"] == "also-scripted"


async def test_tenants_come_from_the_credential(server: Server) -> None:
    body = {"model": "scripted", "messages": HELLO}
    for key in (None, "Bearer a", "Bearer a", "Bearer b"):
        headers = {} if key is None else {"authorization": key}
        await server.client.post("/v1/chat/completions", json=body, headers=headers)
    none, first, again, other = (request.tenant for request in server.engine.seen)
    assert none == ""
    assert first == again
    assert len({none, first, other}) == 3
    assert "Bearer" not in first
