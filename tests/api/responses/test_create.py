"""What goes in and what comes out, at every path."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from hotprefix.base.errors import Overloaded
from hotprefix.engine.request import GrammarKind
from tests.api.responses.support import CALL, DASHSCOPE, OLD, OPENAI, WEATHER, post, respond, stream, text_of
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server

pytestmark = pytest.mark.anyio
PATHS = pytest.mark.parametrize("path", [OPENAI, DASHSCOPE, OLD])
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def prompt(engine: ScriptedEngine, number: int = -1) -> str:
    return engine.model.tokenizer.decode(engine.seen[number].prompt_ids)


@PATHS
async def test_a_response_is_complete(server: Server, path: str) -> None:
    document = await respond(server, path, metadata={"a": "b"}, user="u", prompt_cache_key="k")
    assert text_of(document) == "Hello"
    assert document["status"] == "completed"
    assert document["metadata"] == {"a": "b"}
    assert (document["user"], document["prompt_cache_key"]) == ("u", "k")
    usage = document["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    if path == OPENAI:
        Response.model_validate(document, strict=True)


@PATHS
async def test_a_stream_says_what_a_whole_answer_says(server: Server, path: str) -> None:
    server.engine.reply = lambda _: f"Let me see. {CALL} Done."
    events = await stream(server, path, tools=[WEATHER])
    whole = await respond(server, path, tools=[WEATHER])
    last = events[-1]["response"]
    assert unnamed(last) == unnamed(whole)
    kinds = [event["type"].removeprefix("response.") for event in events]
    assert kinds.count("function_call_arguments.delta") > 5
    assert [kind for kind in kinds if not kind.endswith(".delta")] == [
        "created", "in_progress",
        "output_item.added", "content_part.added",
        "output_text.done", "content_part.done", "output_item.done",
        "output_item.added",
        "function_call_arguments.done", "output_item.done",
        "output_item.added", "content_part.added",
        "output_text.done", "content_part.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    check_stream(events, typed=path == OPENAI)


def unnamed(document: dict[str, Any]) -> str:
    """Without what is new in every answer."""
    document = json.loads(json.dumps(document))
    for item in document["output"]:
        item["id"] = ""
        item.pop("call_id", None)
    return json.dumps(
        document | dict.fromkeys(("id", "created_at", "completed_at", "expires_at")), sort_keys=True
    )


def check_stream(events: list[dict[str, Any]], *, typed: bool = True) -> None:
    """Every event is what OpenAI's types say; deltas add up to what is done, and that to the response."""
    done: dict[int, dict[str, Any]] = {}
    texts: dict[str, str] = {}
    for event in events:
        if typed:
            EVENT.validate_python(event)
        match event["type"]:
            case "response.output_item.added":
                assert event["output_index"] == len(done)
                assert event["item"]["status"] == "in_progress"
                texts[event["item"]["id"]] = ""
            case "response.output_text.delta" | "response.function_call_arguments.delta":
                texts[event["item_id"]] += event["delta"]
            case "response.output_text.done":
                assert texts[event["item_id"]] == event["text"]
            case "response.function_call_arguments.done":
                assert texts[event["item_id"]] == event["arguments"]
            case "response.output_item.done":
                done[event["output_index"]] = event["item"]
    assert list(done.values()) == events[-1]["response"]["output"]


async def test_a_short_answer_is_incomplete(server: Server) -> None:
    server.engine.reply = lambda _: "a long answer"
    events = await stream(server, max_output_tokens=4)
    document = events[-1]["response"]
    assert events[-1]["type"] == "response.incomplete"
    assert document["status"] == "incomplete"
    assert document["incomplete_details"] == {"reason": "max_output_tokens"}
    assert document["output"][0]["status"] == "incomplete"
    assert text_of(document) == "a lo"
    check_stream(events)


async def test_an_empty_answer_is_an_empty_message(server: Server) -> None:
    server.engine.reply = lambda _: ""
    events = await stream(server)
    assert text_of(events[-1]["response"]) == ""
    assert len(events[-1]["response"]["output"]) == 1
    check_stream(events)


def said(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


IMAGE = {"type": "input_image", "image_url": "x"}


async def test_items_become_messages(server: Server) -> None:
    items = [
        {"role": "developer", "content": "Be brief."},
        {"type": "message", "role": "user", "content": [said("A"), said("B")]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "assistant", "content": [{"type": "output_text", "text": "C", "annotations": []}]},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": [said("sunny")]},
        {"role": "user", "content": "D"},
    ]  # fmt: skip
    await respond(server, instructions="Be kind.", input=items)
    assert prompt(server.engine) == (
        "system: Be kind.\n\nBe brief.\nuser: AB\nassistant: C\ntool: sunny\nuser: D\nassistant: "
    )


async def test_sampling_and_formats_reach_the_engine(server: Server) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    fields = {"temperature": 0.5, "top_p": 0.9, "seed": 7, "max_output_tokens": 20, "truncation": "auto"}
    wanted = {"format": {"type": "json_schema", "name": "s", "schema": schema, "strict": True}}
    document = await respond(server, text=wanted, **fields)
    sampling = server.engine.seen[-1].sampling
    assert (sampling.temperature, sampling.top_p, sampling.seed, sampling.max_tokens) == (0.5, 0.9, 7, 20)
    assert sampling.grammar is not None
    assert (sampling.grammar.kind, json.loads(sampling.grammar.source)) == (GrammarKind.JSON_SCHEMA, schema)
    assert document["text"] == wanted
    await respond(server, text={"format": {"type": "json_object"}})
    assert server.engine.seen[-1].sampling.grammar.kind is GrammarKind.JSON_OBJECT  # type: ignore[union-attr]
    await respond(server, text={"format": {"type": "text"}, "verbosity": "low"})
    assert server.engine.seen[-1].sampling.grammar is None


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "weather"}])
async def test_a_call_can_be_required(server: Server, choice: Any) -> None:
    server.engine.reply = lambda _: CALL
    document = await respond(server, tools=[WEATHER], tool_choice=choice)
    grammar = server.engine.seen[-1].sampling.grammar
    assert grammar is not None
    assert grammar.kind is GrammarKind.LARK
    assert document["tool_choice"] == choice
    assert [item["type"] for item in document["output"]] == ["function_call"]


async def test_a_call_that_is_cut_short_is_incomplete(server: Server) -> None:
    server.engine.reply = lambda _: CALL
    events = await stream(server, tools=[WEATHER], max_output_tokens=CALL.index("ris"))
    document = events[-1]["response"]
    assert document["incomplete_details"] == {"reason": "max_output_tokens"}
    (item,) = document["output"]
    assert (item["status"], item["arguments"]) == ("incomplete", '{"city": "Pa')
    check_stream(events)


async def test_one_call_without_parallel_calls(server: Server) -> None:
    server.engine.reply = lambda _: CALL + CALL
    document = await respond(server, tools=[WEATHER], parallel_tool_calls=False)
    assert len(document["output"]) == 1
    assert document["parallel_tool_calls"] is False


async def test_with_tool_choice_none_the_model_sees_no_tools(server: Server) -> None:
    await respond(server, tools=[WEATHER], tool_choice="none")
    assert "weather" not in prompt(server.engine)


async def test_logprobs_are_there_when_asked_for(server: Server) -> None:
    fields = {"include": ["message.output_text.logprobs"], "top_logprobs": 2}
    events = await stream(server, **fields)
    part = events[-1]["response"]["output"][0]["content"][0]
    assert [one["token"] for one in part["logprobs"]][:5] == list("Hello")
    assert len(part["logprobs"][0]["top_logprobs"]) == 2
    shown = [one for event in events if event["type"].endswith("text.delta") for one in event["logprobs"]]
    assert shown == part["logprobs"][: len(shown)]
    check_stream(events)
    assert (await respond(server))["output"][0]["content"][0]["logprobs"] == []


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": 5}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"role": "user"}]}, "input[0].content"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [IMAGE]}]}, "input[0].content[0].type"),
        ({"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}, "input[0].call_id"),
        ({"conversation": "conv_1", "previous_response_id": "resp_1"}, "conversation"),
        ({"background": True}, "background"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"truncation": "some"}, "truncation"),
        ({"metadata": {"a": 1}}, "metadata.a"),
        ({"metadata": {"a": "b" * 513}}, "metadata.a"),
        ({"metadata": {"a" * 65: "b"}}, f"metadata.{'a' * 60}….[key]"),
        ({"user": "u" * 1001}, "user"),
        ({"prompt_cache_key": "k" * 1001}, "prompt_cache_key"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [WEATHER, WEATHER]}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "x"}}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "web_search"}}, "tool_choice"),
        ({"text": {"format": {"type": "json_schema", "name": "s"}}}, "text.format.schema"),
        ({"model": "other"}, "model"),
    ],
)  # fmt: skip
async def test_what_is_wrong_is_named(server: Server, fields: dict[str, Any], param: str) -> None:
    response = await post(server, **fields)
    assert response.status_code == (404 if "model" in fields else 400), response.text
    assert response.json()["error"]["param"] == param
    assert server.engine.seen == []


async def test_the_compatible_route_accepts_more(server: Server) -> None:
    response = await post(
        server,
        DASHSCOPE,
        input=[{"type": "web_search_call", "id": "w"}, {"role": "user", "content": "Hello"}],
        tools=[{"type": "web_search"}, WEATHER, {"type": "code_interpreter", "container": {}}],
        tool_choice={"type": "web_search"},
        background=False,
        nonsense=1,
    )
    assert response.status_code == 200, response.text
    warning = response.headers["x-hotprefix-warning"]
    for path in ("input[0]", "tools[0]", "tools[2]", "tool_choice"):
        assert f"{path} has no effect" in warning
    assert response.headers["x-hotprefix-ignored"] == "nonsense"
    assert [tool["type"] for tool in response.json()["tools"]] == ["function"]


@pytest.mark.parametrize("path", [DASHSCOPE, OLD])
async def test_the_compatible_route_tells_errors_flat(server: Server, path: str) -> None:
    response = await post(server, path, max_output_tokens=15)
    assert response.status_code == 400
    assert response.json() == {
        "code": "InvalidParameter",
        "message": "Invalid value for 'max_output_tokens': input should be greater than or equal to 16 "
        "(got 15).",
        "request_id": response.headers["x-request-id"],
    }
    assert (await respond(server, path, max_output_tokens=16))["max_output_tokens"] == 16
    missing = await server.client.get(f"{path}/resp_x")
    assert (missing.status_code, missing.json()["code"]) == (404, "Not Found")


async def test_the_compatible_route_tells_errors_in_streams(server: Server) -> None:
    events = await stream(server, DASHSCOPE, previous_response_id="resp_x")
    assert [event["type"] for event in events] == ["response.failed"]
    assert events[0]["response"]["error"] == {
        "code": "InvalidParameter",
        "message": "Not found previous_response_id: resp_x",
    }
    server.engine.refusal = Overloaded("Too many.", retry_after=3)
    response = await post(server, DASHSCOPE, stream=True)
    assert (response.status_code, response.headers["retry-after"]) == (200, "3")
    assert '"code":"Throttling"' in response.text
    assert [line["error"] for line in server.lines()] == ["previous_response_not_found", "overloaded"]


async def test_openais_route_has_statuses_in_streams_too(server: Server) -> None:
    response = await post(server, previous_response_id="resp_x", stream=True)
    assert response.status_code == 400
    server.engine.refusal = Overloaded("Too many.", retry_after=3)
    response = await post(server, stream=True)
    assert (response.status_code, response.json()["error"]["code"]) == (429, "overloaded")


@pytest.mark.parametrize(("path", "code"), [(OPENAI, "server_error"), (DASHSCOPE, "InternalError")])
async def test_a_failure_in_the_middle_ends_the_stream(server: Server, path: str, code: str) -> None:
    server.engine.fail_after = 3
    events = await stream(server, path)
    assert events[-1]["type"] == "response.failed"
    failed = events[-1]["response"]
    assert failed["error"]["code"] == code
    assert "secret" not in json.dumps(events)
    assert (await server.client.get(f"{path}/{failed['id']}")).status_code == 404


async def test_an_abandoned_stream_stores_nothing(server: Server) -> None:
    server.engine.hold_after = 2
    request = asyncio.create_task(post(server))
    await server.engine.held.wait()
    request.cancel()
    await asyncio.wait([request])
    assert await server.sessions.purge() == 0
    assert (await asyncio.to_thread(server.sessions._store.count)) == (0, 0)
