"""Pre-processing of requests: off by default, asked for by the operator or by header, always told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hotprefix.prompt.preprocess.catalogue import StepName
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process

pytestmark = pytest.mark.anyio

ODD = "a\r\nb\u007f\u2028\ufdd0 ------ e\u0301 \U0001f469\u200d\U0001f52c"
DONE = "x-hotprefix-preprocessed"


def seen(server: Server, at: int = -1) -> str:
    return bytes(server.engine.seen[at].prompt_ids).decode()


async def send(server: Server, *messages: tuple[str, Any], steps: str | None = None, **fields: Any) -> Any:
    body = {"model": "scripted", "messages": [{"role": role, "content": text} for role, text in messages]}
    headers = {} if steps is None else {"x-hotprefix-preprocess": steps}
    response = await server.client.post("/v1/chat/completions", json=body | fields, headers=headers)
    assert response.status_code == 200, response.text
    return response


async def test_t11_bytes_are_untouched_by_default(server: Server) -> None:
    response = await send(server, ("system", "\x00" + ODD), ("user", ODD))
    assert seen(server) == f"system: \x00{ODD}\nuser: {ODD}\nassistant: "
    assert DONE not in response.headers


async def test_steps_by_header_are_told_with_counts_and_places(server: Server) -> None:
    response = await send(server, ("user", ODD), steps="pollution,line-ends,unicode,invalid-characters")
    assert seen(server) == "user: a\nb\u2028 --- \u00e9 \U0001f469\u200d\U0001f52c\nassistant: "
    assert response.headers[DONE] == (
        'invalid-characters;n=2;first="messages[0].content+4", line-ends;n=1;first="messages[0].content+1", '
        'unicode;n=1;first="messages[0].content+12", pollution;n=1;first="messages[0].content+8"'
    )
    (line,) = server.lines()
    assert line["preprocessed"] == response.headers[DONE]


async def test_steps_of_the_operator_and_a_request_that_wants_none(anyio_backend: str) -> None:
    async with in_process(ScriptedEngine(), preprocess=(StepName.LINE_ENDS,)) as server:
        assert (await send(server, ("user", "a\r\nb"))).headers[DONE].startswith("line-ends;n=1")
        assert (await send(server, ("user", "plain"))).headers[DONE] == "line-ends;n=0"
        assert DONE not in (await send(server, ("user", "a\r\nb"), steps="none")).headers
        assert seen(server) == "user: a\r\nb\nassistant: "
        # Whoever counts tokens counts those of the prompt as it will be.
        counted = await server.client.post(
            "/tokenize", json={"messages": [{"role": "user", "content": "a\r\nb"}]}
        )
        assert bytes(counted.json()["tokens"]) == b"user: a\nb\nassistant: "
        raw = await server.client.post("/v1/completions", json={"model": "scripted", "prompt": "a\r\nb"})
        assert seen(server) == "a\nb"
        assert raw.headers[DONE] == 'line-ends;n=1;first="prompt+1"'


async def test_an_unknown_step_is_refused_with_the_names(server: Server) -> None:
    response = await server.client.post(
        "/v1/chat/completions", json={}, headers={"x-hotprefix-preprocess": "magic"}
    )
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, "x-hotprefix-preprocess")
    assert "no step 'magic'; there are invalid-characters, line-ends" in error["message"]


async def test_t01_a_clock_at_the_head_no_longer_matters(server: Server) -> None:
    rules = "\n".join(f"Rule {n}: goods of kind {n} stand on shelf {n}." for n in range(40))
    for second in (1, 2):
        system = f"Report time 2031-04-05T10:00:0{second}\n{rules}"
        await send(server, ("system", system), ("user", "Where?"), steps="volatile-headers")
    assert seen(server, 0) == seen(server, 1)


async def test_t06_permuted_schemas_are_one_prefix(server: Server) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["b", "a"]}
    turned = json.loads(json.dumps(parameters, sort_keys=True))
    turned = {key: turned[key] for key in reversed(turned)}
    for schema in (parameters, turned):
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        await send(server, ("user", "Hi"), tools=[tool], steps="canonical-tools")
        await send(server, ("user", "Hi"), tools=[tool])
    assert seen(server, 0) == seen(server, 2)
    assert seen(server, 1) != seen(server, 3)


async def test_markers_move_with_their_blocks(anyio_backend: str) -> None:
    async with in_process(ScriptedEngine(context_length=8192)) as server:
        marked = [{"type": "text", "text": "r" * 1200, "cache_control": {"type": "ephemeral"}}]
        turns = [("user", "u" * 3000), ("assistant", "a" * 3000)]
        plain = await send(server, ("system", "s"), *turns, ("user", marked), steps="truncate")
        assert plain.headers[DONE] == 'truncate;n=2;first="messages[1]+0"'
        assert plain.headers["x-hotprefix-cache-mode"] == "explicit"
        details = plain.json()["usage"]["prompt_tokens_details"]
        assert details["cache_creation_input_tokens"] == len("system: s\nuser: " + "r" * 1200)


async def test_a_marker_in_a_dropped_turn_is_told(anyio_backend: str) -> None:
    async with in_process(ScriptedEngine(context_length=4096)) as server:
        marked = [{"type": "text", "text": "r" * 3000, "cache_control": {"type": "ephemeral"}}]
        response = await send(server, ("user", marked), ("user", "u" * 1500), steps="truncate")
        assert "truncation dropped its message" in response.headers["x-hotprefix-warning"]
        assert seen(server) == "user: " + "u" * 1500 + "\nassistant: "


async def test_too_long_without_truncation_is_refused(server: Server) -> None:
    body = {"model": "scripted", "messages": [{"role": "user", "content": "u" * 5000}]}
    response = await server.client.post("/v1/chat/completions", json=body)
    assert response.json()["error"]["code"] == "context_length_exceeded"


async def test_what_is_far_too_long_is_refused_before_the_steps(server: Server) -> None:
    """Sixteen megabytes of carriage returns would be as many recorded changes."""
    text = "\r" * (64 * server.engine.model.context_length + 1)
    for path, body, param in (
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": text}]}, "messages"),
        ("/v1/completions", {"prompt": text}, "prompt"),
    ):
        response = await server.client.post(
            path, json={"model": "scripted"} | body, headers={"x-hotprefix-preprocess": "line-ends"}
        )
        assert response.status_code == 400
        assert response.json()["error"]["code"] == "context_length_exceeded"
        assert response.json()["error"]["param"] == param
        assert "pre-processing takes at most" in response.json()["error"]["message"]


async def test_tokenize_shows_the_tokens_after_the_steps(server: Server) -> None:
    said = [{"role": "user", "content": "a\r\nb"}]
    for dirty, clean in (
        ({"prompt": "a\r\nb"}, {"prompt": "a\nb"}),
        ({"messages": said}, {"messages": [{"role": "user", "content": "a\nb"}]}),
    ):
        wanted = (await server.client.post("/tokenize", json=clean)).json()
        steps = {"x-hotprefix-preprocess": "line-ends"}
        assert (await server.client.post("/tokenize", json=dirty, headers=steps)).json() == wanted
