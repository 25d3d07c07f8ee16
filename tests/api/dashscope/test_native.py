"""Shapes and bytes of DashScope's native protocol."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from hotprefix.base.errors import Overloaded, Unavailable
from hotprefix.engine.request import GrammarKind
from tests.api.dashscope.support import MULTIMODAL, SSE, TEXT, events, generate, taken_apart
from tests.api.scripted_engine import EOS
from tests.api.support import HELLO, Server

pytestmark = pytest.mark.anyio

SAID = HELLO[0]["content"]
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>'


async def test_a_message(server: Server) -> None:
    response = await generate(server, result_format="message")
    prompt, drawn = len(server.engine.seen[0].prompt_ids), len(SAID.encode()) + 1
    assert response.json() == {
        "output": {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": SAID}}]},
        "usage": {
            "input_tokens": prompt,
            "output_tokens": drawn,
            "total_tokens": prompt + drawn,
            "prompt_tokens_details": {"cached_tokens": prompt // 2},
        },
        "request_id": response.headers["x-request-id"],
    }


async def test_text_is_the_default(server: Server) -> None:
    assert (await generate(server)).json()["output"] == {"text": SAID, "finish_reason": "stop"}


async def test_the_exact_bytes_of_a_stream(server: Server) -> None:
    server.engine.reply = lambda prompt: "Hi"
    headers = SSE | {"x-request-id": "r"}
    parameters = {"result_format": "message", "incremental_output": True}
    response = await generate(server, headers=headers, **parameters)
    prompt = len(server.engine.seen[0].prompt_ids)

    def event(number: int, text: str, reason: str) -> str:
        usage = (
            f'{{"input_tokens":{prompt},"output_tokens":{number},"total_tokens":{prompt + number},'
            f'"prompt_tokens_details":{{"cached_tokens":{prompt // 2}}}}}'
        )
        message = f'{{"role":"assistant","content":"{text}"}}'
        return (
            f"id:{number}\nevent:result\n:HTTP_STATUS/200\n"
            f'data:{{"output":{{"choices":[{{"finish_reason":"{reason}","message":{message}}}]}},'
            f'"usage":{usage},"request_id":"r"}}\n\n'
        )

    assert response.text == event(1, "H", "null") + event(2, "i", "null") + event(3, "", "stop")


@pytest.mark.parametrize("result_format", ["text", "message"])
async def test_a_stream_has_all_text_so_far_or_only_what_is_new(server: Server, result_format: str) -> None:
    def text_of(document: dict[str, Any]) -> str:
        output = document["output"]
        return str(output["text"] if result_format == "text" else output["choices"][0]["message"]["content"])

    whole = (await generate(server, result_format=result_format)).json()
    parts = await events(server, result_format=result_format, incremental_output=True)
    sums = await events(server, result_format=result_format)
    assert "".join(map(text_of, parts)) == SAID
    assert [text_of(document) for document in sums][-1] == SAID
    for earlier, later in pairwise(sums):
        assert text_of(later).startswith(text_of(earlier))
    # T32: the last event says what the whole answer says.
    assert sums[-1]["output"] == whole["output"]
    assert parts[-1]["usage"] == sums[-1]["usage"] == whole["usage"]
    drawn = [document["usage"]["output_tokens"] for document in parts]
    assert drawn == sorted(drawn)


async def test_accept_asks_for_a_stream_too(server: Server) -> None:
    response = await generate(server, headers={"accept": "text/event-stream"})
    assert len(taken_apart(response.text)) > 1
    assert (await generate(server, headers={"X-DashScope-SSE": "disable"})).json()["output"]["text"] == SAID


@pytest.mark.parametrize("path", [TEXT, MULTIMODAL])
@pytest.mark.parametrize(
    "content",
    [SAID, [{"text": SAID}], [{"type": "text", "text": SAID}], [{"text": SAID[:3]}, {"text": SAID[3:]}]],
)
async def test_content_as_both_generations_of_the_sdk_send_it(
    server: Server, path: str, content: Any
) -> None:
    messages = [{"role": "user", "content": content}]
    response = await generate(server, messages=messages, path=path, result_format="message")
    shown = [{"text": SAID}] if path == MULTIMODAL else SAID
    assert response.json()["output"]["choices"][0]["message"]["content"] == shown


async def test_prompt_and_history(server: Server) -> None:
    for given, asked in (
        ({"prompt": "now"}, "user: now\nassistant: "),
        (
            {"history": [{"user": "a", "bot": "b"}], "prompt": "now"},
            "user: a\nassistant: b\nuser: now\nassistant: ",
        ),
        (
            {"messages": [{"role": "system", "content": "s"}], "prompt": "now"},
            "system: s\nuser: now\nassistant: ",
        ),
    ):
        response = await server.client.post(TEXT, json={"model": "scripted", "input": given})
        assert response.json()["output"]["text"] == "now"
        assert server.engine.model.tokenizer.decode(server.engine.seen[-1].prompt_ids) == asked


@pytest.mark.parametrize("incremental", [True, False])
async def test_tool_calls(server: Server, incremental: bool) -> None:
    server.engine.reply = lambda prompt: f"Well. {CALL}"
    whole = (await generate(server, tools=[WEATHER])).json()
    last = (await events(server, tools=[WEATHER], incremental_output=incremental))[-1]
    shown = await events(server, tools=[WEATHER], incremental_output=incremental)
    calls = [
        call
        for document in shown
        for call in document["output"]["choices"][0]["message"].get("tool_calls", ())
    ]
    arguments = [call["function"]["arguments"] for call in calls]
    assert {call["index"] for call in calls} == {0}
    assert {call["type"] for call in calls} == {"function"}
    if incremental:
        merged = calls[0] | {"function": calls[0]["function"] | {"arguments": "".join(arguments)}}
        assert not any("name" in call["function"] for call in calls[1:])
    else:
        merged = calls[-1]
        assert arguments == sorted(arguments, key=len)
    assert len(set(arguments)) > 5
    for call in (merged, whole["output"]["choices"][0]["message"]["tool_calls"][0]):
        assert call["index"] == 0
        assert call["type"] == "function"
        assert call["id"].startswith("call_")
        assert call["function"] == {"name": "weather", "arguments": '{"city": "Paris"}'}
    assert last["output"]["choices"][0]["finish_reason"] == "tool_calls"
    assert whole["output"]["choices"][0]["finish_reason"] == "tool_calls"
    assert whole["output"]["choices"][0]["message"]["content"] == "Well."


async def test_a_call_that_is_asked_for_is_forced(server: Server) -> None:
    choice = {"type": "function", "function": {"name": "weather"}}
    await generate(server, tools=[WEATHER], tool_choice=choice)
    grammar = server.engine.seen[0].sampling.grammar
    assert grammar is not None
    assert (grammar.kind, "weather" in grammar.source) == (GrammarKind.LARK, True)
    await generate(server, response_format={"type": "json_object"})
    grammar = server.engine.seen[1].sampling.grammar
    assert grammar is not None
    assert grammar.kind is GrammarKind.JSON_OBJECT


async def test_a_conversation_with_tools_goes_on(server: Server) -> None:
    call = {"id": "c", "index": 0, "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": [{"text": "sunny"}], "tool_call_id": "c"},
    ]
    assert (await generate(server, messages=messages, tools=[WEATHER])).status_code == 200


async def test_all_parameters_reach_the_engine(server: Server) -> None:
    given: dict[str, Any] = {
        "temperature": 0.1,
        "top_p": 0.9,
        "top_k": 20,
        "max_tokens": 7,
        "seed": 1234,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.5,
    }
    assert (await generate(server, **given)).status_code == 200
    sampling = server.engine.seen[0].sampling
    for name, value in given.items():
        assert getattr(sampling, name) == value, name
    await generate(server, top_k=101)
    assert server.engine.seen[1].sampling.top_k == 0


@pytest.mark.parametrize(
    ("stop", "texts", "tokens"),
    [
        ("x", ("x",), set()),
        (["x", "y"], ("x", "y"), set()),
        ([104, 105], (), {104, 105}),
        ([[104], [105, 106]], ("ij",), {104}),
    ],
)
async def test_stops(server: Server, stop: Any, texts: tuple[str, ...], tokens: set[int]) -> None:
    assert (await generate(server, stop=stop)).status_code == 200
    sampling = server.engine.seen[0].sampling
    assert (sampling.stop, sampling.stop_token_ids) == (texts, tokens)


async def test_logprobs(server: Server) -> None:
    answer = (await generate(server, result_format="message", logprobs=True, top_logprobs=2)).json()
    entries = answer["output"]["choices"][0]["logprobs"]["content"]
    assert bytes(b for entry in entries for b in entry["bytes"]) == SAID.encode()
    assert {len(entry["top_logprobs"]) for entry in entries} == {2}
    shown = await events(
        server, result_format="message", logprobs=True, top_logprobs=2, incremental_output=True
    )
    pieces = [document["output"]["choices"][0].get("logprobs", {"content": []}) for document in shown]
    assert [entry for piece in pieces for entry in piece["content"]] == entries


async def test_several_choices_add_up(server: Server) -> None:
    whole = (await generate(server, n=3, result_format="message")).json()
    assert [choice["index"] for choice in whole["output"]["choices"]] == [0, 1, 2]
    shown = await events(server, n=3, result_format="message")
    last = {document["output"]["choices"][0]["index"]: document for document in shown}
    drawn = sum(document["usage"]["output_tokens"] for document in last.values())
    assert drawn == whole["usage"]["output_tokens"]
    assert [last[index]["output"]["choices"][0] for index in range(3)] == whole["output"]["choices"]


async def test_a_stop_token_and_the_end_of_the_context_are_finish_reasons(server: Server) -> None:
    assert (await generate(server, max_tokens=2)).json()["output"]["finish_reason"] == "length"
    assert (await generate(server, stop=[EOS])).json()["output"]["finish_reason"] == "stop"


async def test_what_has_no_effect_is_told(server: Server) -> None:
    response = await generate(server, thinking_budget=5, enable_search=False)
    assert response.headers["x-hotprefix-ignored"] == "parameters.thinking_budget, parameters.enable_search"


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"input": {"messages": HELLO}}, "model"),
        ({"model": "scripted"}, "input"),
        ({"model": "scripted", "input": {}}, "input.messages"),
        ({"model": "scripted", "input": {"messages": []}}, "input.messages"),
        ({"model": "scripted", "input": {"messages": [{"role": "user"}]}}, "input.messages[0].content"),
        (
            {"model": "scripted", "input": {"messages": [{"role": "user", "content": [{"image": "u"}]}]}},
            "input.messages[0].content[0].type",
        ),
        (
            {"model": "scripted", "input": {"messages": [{"role": "user", "content": "x", "partial": True}]}},
            "input.messages[0].partial",
        ),
        ({"model": "scripted", "input": {"prompt": "x"}, "parameters": {"seed": "1"}}, "parameters.seed"),
        ({"model": "scripted", "input": {"prompt": "x"}, "parameters": {"seed": 1.5}}, "parameters.seed"),
        (
            {"model": "scripted", "input": {"prompt": "x"}, "parameters": {"stop": ["a", 1]}},
            "parameters.stop",
        ),
        ({"model": "scripted", "input": {"prompt": "x"}, "parameters": {"stop": [999]}}, "parameters.stop"),
        (
            {"model": "scripted", "input": {"prompt": "x"}, "parameters": {"top_logprobs": 1}},
            "parameters.top_logprobs",
        ),
        (
            {"model": "scripted", "input": {"prompt": "x"}, "parameters": {"result_format": "xml"}},
            "parameters.result_format",
        ),
        ({"model": "scripted", "input": {"prompt": "x" * 5000}}, None),
    ],
)
@pytest.mark.parametrize("headers", [{}, SSE])
async def test_bad_requests(
    server: Server, body: dict[str, Any], place: str | None, headers: dict[str, str]
) -> None:
    response = await server.client.post(TEXT, json=body, headers=headers)
    answer = response.json()
    assert response.status_code == 400
    assert set(answer) == {"code", "message", "request_id"}
    assert answer["code"] == "InvalidParameter"
    assert answer["request_id"] == response.headers["x-request-id"]
    assert place is None or f"'{place}'" in answer["message"]


async def test_codes(server: Server) -> None:
    response = await server.client.post(TEXT, json={"model": "nope", "input": {"prompt": "x"}})
    assert (response.status_code, response.json()["code"]) == (404, "Model.NotExist")
    response = await server.client.get("/api/v1/nothing")
    assert (response.status_code, response.json()["code"]) == (404, "Not Found")
    response = await server.client.get(TEXT)
    assert (response.status_code, response.json()["code"]) == (405, "Method Not Allowed")
    for refusal, status, code in (
        (Overloaded("full"), 429, "Throttling"),
        (Unavailable("later"), 503, "ServiceUnavailable"),
        (RuntimeError("secret"), 500, "InternalError"),
    ):
        server.engine.refusal = refusal
        response = await generate(server)
        assert (response.status_code, response.json()["code"]) == (status, code)
        assert "secret" not in response.text


async def test_an_error_in_a_stream_is_an_event_without_spaces(server: Server) -> None:
    server.engine.fail_after = 2
    response = await generate(server, headers=SSE)
    *_, (kind, status, document) = taken_apart(response.text)
    assert "\nevent:error\n:HTTP_STATUS/500\ndata:{" in response.text
    assert (kind, status, document["code"]) == ("error", 500, "InternalError")
    assert document["request_id"] == response.headers["x-request-id"]
    assert "secret" not in response.text
    assert json.dumps(document).isascii()
