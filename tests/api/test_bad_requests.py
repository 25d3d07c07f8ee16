from __future__ import annotations

from typing import Any

import httpx
import pytest

from hotprefix.api.settings import ApiSettings
from hotprefix.base.errors import Draining, InvalidRequest, Overloaded, Unavailable
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import HELLO, Server, in_process, read_events

pytestmark = pytest.mark.anyio

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"


def chat(**fields: Any) -> dict[str, Any]:
    return {"model": "scripted", "messages": HELLO} | fields


def said(content: Any) -> list[dict[str, Any]]:
    return [*HELLO, {"role": "user", "content": content}]


def envelope(response: httpx.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    assert response.headers["x-request-id"]
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert "Traceback" not in response.text
    error: dict[str, Any] = body["error"]
    return error


A_CALL = {"function": {"name": "f", "arguments": ""}}


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


FIELDS = [
    (chat(messages=[]), "messages"),
    (chat(messages={}), "messages"),
    (chat(messages=None), "messages"),
    ({"model": "scripted"}, "messages"),
    ({"messages": HELLO}, "model"),
    (chat(model=7), "model"),
    (chat(model=""), "model"),
    (chat(messages=["hi"]), "messages[0]"),
    (chat(messages=[{"role": "user"}]), "messages[0].content"),
    (chat(messages=[{"content": "x"}]), "messages[0].role"),
    (chat(messages=[{"role": "root", "content": "x"}]), "messages[0].role"),
    (chat(messages=said(7)), "messages[1].content"),
    (chat(messages=said([{"type": "text"}])), "messages[1].content[0].text"),
    (chat(messages=said([{"type": "text", "text": 7}])), "messages[1].content[0].text"),
    (chat(messages=said([{"type": "image_url", "image_url": {"url": "x"}}])), "messages[1].content[0].type"),
    (chat(messages=said([{"type": "input_audio"}])), "messages[1].content[0].type"),
    (chat(messages=[{"role": "user", "content": "x", "tool_calls": [A_CALL]}]), "messages[0].tool_calls"),
    (chat(messages=[{"role": "assistant", "tool_calls": [{"function": {"name": "f"}}]}]),
     "messages[0].tool_calls[0].function.arguments"),
    (chat(max_tokens=0), "max_tokens"),
    (chat(max_tokens=-1), "max_tokens"),
    (chat(max_tokens="5"), "max_tokens"),
    (chat(max_tokens=True), "max_tokens"),
    (chat(max_tokens=1.5), "max_tokens"),
    (chat(max_tokens=10**30), "max_tokens"),
    (chat(max_completion_tokens=0), "max_completion_tokens"),
    (chat(n=0), "n"),
    (chat(n=129), "n"),
    (chat(temperature=2.1), "temperature"),
    (chat(temperature=-0.1), "temperature"),
    (chat(temperature="hot"), "temperature"),
    (chat(top_p=1.1), "top_p"),
    (chat(top_k=-2), "top_k"),
    (chat(min_p=2), "min_p"),
    (chat(repetition_penalty=0), "repetition_penalty"),
    (chat(presence_penalty=3), "presence_penalty"),
    (chat(frequency_penalty=-3), "frequency_penalty"),
    (chat(seed=2**64), "seed"),
    (chat(stop=[""]), "stop[0]"),
    (chat(stop=7), "stop"),
    (chat(stop=["a"] * 17), "stop"),
    (chat(stop_token_ids=[257]), "stop_token_ids[0]"),
    (chat(logit_bias={"257": 1}), "logit_bias"),
    (chat(logit_bias={"x": 1}), "logit_bias"),
    (chat(logit_bias={"-1": 1}), "logit_bias"),
    (chat(logit_bias={"1": 101}), "logit_bias.1"),
    (chat(logprobs=3), "logprobs"),
    (chat(top_logprobs=3), "top_logprobs"),
    (chat(logprobs=True, top_logprobs=21), "top_logprobs"),
    (chat(stream="yes"), "stream"),
    (chat(stream_options={"include_usage": 1}), "stream_options.include_usage"),
    (chat(response_format={"type": "xml"}), "response_format.type"),
    (chat(response_format={"type": "json_schema"}), "response_format.json_schema"),
    (chat(response_format={"type": "json_schema", "json_schema": {"schema": deep(70)}}),
     "response_format.json_schema.schema"),
    (chat(tools=[{"type": "retrieval"}]), "tools[0].type"),
    (chat(tools=[{"type": "function", "function": {"name": "a b"}}]), "tools[0].function.name"),
    (chat(tools=[{"type": "function", "function": {"name": "f"}}] * 2), "tools"),
    (chat(tool_choice="required"), "tool_choice"),
    (chat(tool_choice="always"), "tool_choice"),
    (chat(tool_choice={"type": "function", "function": {"name": "f"}}), "tool_choice"),
    (chat(tool_choice={"type": "function"}), "tool_choice.function"),
    (chat(chat_template_kwargs={"messages": []}), "chat_template_kwargs.messages"),
    (chat(chat_template_kwargs=deep(70)), "chat_template_kwargs"),
    (chat(modalities=["text", "audio"]), "modalities[1]"),
    (chat(audio={"voice": "x"}), "audio"),
    (chat(functions=[]), "functions"),
    (chat(web_search_options={}), "web_search_options"),
]  # fmt: skip

TEXT_FIELDS = [
    ({}, "prompt"),
    ({"prompt": None}, "prompt"),
    ({"prompt": []}, "prompt"),
    ({"prompt": ""}, "prompt"),
    ({"prompt": [""]}, "prompt"),
    ({"prompt": [[]]}, "prompt[0]"),
    ({"prompt": {}}, "prompt"),
    ({"prompt": [257]}, "prompt"),
    ({"prompt": [[1], [999]]}, "prompt[1]"),
    ({"prompt": [1, "a"]}, "prompt[0][1]"),
    ({"prompt": ["a", 1]}, "prompt[1]"),
    ({"prompt": "a", "suffix": "b"}, "suffix"),
    ({"prompt": "a", "best_of": 2}, "best_of"),
    ({"prompt": "a", "logprobs": 21}, "logprobs"),
    ({"prompt": "a", "logprobs": 1, "echo": True}, "logprobs"),
    ({"prompt": ["a"] * 50, "n": 3}, "prompt"),
]


@pytest.mark.parametrize(("body", "param"), FIELDS, ids=lambda value: str(value)[:60])
async def test_bad_chat_field(server: Server, body: dict[str, Any], param: str) -> None:
    error = envelope(await server.client.post(CHAT, json=body), 400)
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"
    assert param in error["message"]
    assert server.engine.seen == []


@pytest.mark.parametrize(("fields", "param"), TEXT_FIELDS, ids=lambda value: str(value)[:60])
async def test_bad_completion_field(server: Server, fields: dict[str, Any], param: str) -> None:
    error = envelope(await server.client.post(TEXT, json={"model": "scripted"} | fields), 400)
    assert error["param"] == param
    assert server.engine.seen == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "empty"),
        (b"   ", "empty"),
        (b"{", "line 1, column 2"),
        (b'{"model": "scripted",\n "messages": [}', "line 2, column 15"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b"[" * 100_000, "depth"),
        (b'{"a":' * 100_000, "depth"),
        (b'{"temperature": NaN}', "column 17"),
        (b'{"temperature": Infinity}', "column 17"),
        (b'{"temperature": 1e999}', "infinity"),
        (b'{"model": "\xff"}', "UTF-8 at byte 11"),
        (b'{"model": "\\ud800"}', "surrogate"),
        (b'{"model": "\\udc00"}', "surrogate"),
        (b'{"model": "\xed\xa0\x80"}', "UTF-8 at byte 11"),
        (b"{'model': 1}", "column 2"),
    ],
    ids=lambda value: repr(value)[:40],
)
@pytest.mark.parametrize("path", [CHAT, TEXT, "/tokenize"])
async def test_bad_json(server: Server, path: str, body: bytes, says: str) -> None:
    error = envelope(await server.client.post(path, content=body), 400)
    assert error["code"] == "invalid_json"
    assert says in error["message"]


async def test_unknown_model(server: Server) -> None:
    error = envelope(await server.chat(model="gpt-4"), 404)
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert "scripted" in error["message"]


async def test_unknown_path_and_method(server: Server) -> None:
    assert envelope(await server.client.get("/v2/nothing"), 404)["code"] == "unknown_url"
    for method, path in [("GET", CHAT), ("PUT", TEXT), ("POST", "/v1/models"), ("DELETE", "/healthz")]:
        response = await server.client.request(method, path)
        assert envelope(response, 405)["code"] == "method_not_allowed"
        assert response.headers["allow"]


@pytest.mark.parametrize(
    ("text", "max_tokens", "numbers"),
    [("x" * 5000, None, ["4095"]), ("x" * 4000, 500, ["4096", "4518"]), ("x" * 4077, 2, ["4097"])],
)
async def test_prompt_longer_than_the_context(
    server: Server, text: str, max_tokens: int | None, numbers: list[str]
) -> None:
    response = await server.chat(messages=[{"role": "user", "content": text}], max_tokens=max_tokens)
    error = envelope(response, 400)
    assert error["code"] == "context_length_exceeded"
    assert error["param"] == "messages"
    for number in numbers:
        assert number in error["message"]


async def test_body_over_the_limit() -> None:
    async with in_process(ScriptedEngine(), ApiSettings(body_limit=1000)) as server:
        declared = await server.client.post(CHAT, content=b"x" * 1001)
        assert envelope(declared, 413)["code"] == "payload_too_large"

        async def chunked() -> Any:
            for _ in range(20):
                yield b"x" * 100

        streamed = await server.client.post(CHAT, content=chunked())
        assert "content-length" not in streamed.request.headers
        assert "1000" in envelope(streamed, 413)["message"]
        assert streamed.headers["connection"] == "close"
        fits = await server.client.post(CHAT, content=b"x" * 1000)
        assert envelope(fits, 400)["code"] == "invalid_json"


@pytest.mark.parametrize(
    ("refusal", "status", "code", "retry"),
    [
        (Overloaded("full", retry_after=3), 429, "overloaded", "3"),
        (Draining("bye", retry_after=5), 503, "shutting_down", "5"),
        (Unavailable("not now"), 503, "unavailable", "1"),
        (InvalidRequest("bad schema", param="response_format"), 400, "invalid_value", None),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("moment", ["refusal", "late_refusal"])
async def test_the_engine_refuses(
    server: Server, moment: str, stream: bool, refusal: Exception, status: int, code: str, retry: str | None
) -> None:
    setattr(server.engine, moment, refusal)
    response = await server.chat(stream=stream)
    assert envelope(response, status)["code"] == code
    assert response.headers.get("retry-after") == retry


async def test_an_unexpected_failure_is_told_without_its_reason(server: Server) -> None:
    server.engine.fail_after = 2
    response = await server.client.post(CHAT, json=chat(), headers={"x-request-id": "abc"})
    error = envelope(response, 500)
    assert "abc" in error["message"]
    assert "secret" not in response.text
    (line,) = server.lines("request failed")
    assert line["request_id"] == "abc"
    assert "secret" in str(line["exc_info"])


async def test_a_failure_in_a_stream_is_its_last_event(server: Server) -> None:
    server.engine.fail_after = 2
    chunks = await server.chunks()
    assert chunks[-1]["error"]["code"] == "internal_error"
    assert "secret" not in str(chunks)
    assert sum("error" in chunk for chunk in chunks) == 1
    assert all(not piece["finish_reason"] for chunk in chunks[:-1] for piece in chunk["choices"])
    (line,) = server.lines()
    assert (line["status"], line["error"]) == (200, "internal_error")


async def test_a_failing_prompt_ends_the_other_ones(server: Server) -> None:
    server.engine.fail_after = 3
    response = await server.client.post(
        TEXT, json={"model": "scripted", "prompt": ["a", "bcdef"], "stream": True}
    )
    assert "error" in read_events(response.text)[-1]
    assert server.engine.in_flight == 0


async def test_a_declared_length_of_any_size(server: Server) -> None:
    response = await server.client.post(CHAT, content=b"{}", headers={"content-length": "9" * 5000})
    assert envelope(response, 413)["code"] == "payload_too_large"


async def test_a_name_of_the_clients_own_is_shortened(server: Server) -> None:
    response = await server.client.post(CHAT, json=chat(logit_bias={"a" * 100_000: "b"}))
    error = envelope(response, 400)
    assert error["param"] == f"logit_bias.{'a' * 60}…"
    assert len(response.content) < 1000
