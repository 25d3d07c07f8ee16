"""A request says how its cache is kept: by header in every dialect, by a body field in OpenAI's."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from hotprefix.engine.strategy.choice import StrategyChoice, StrategyName
from tests.api.support import Server

pytestmark = pytest.mark.anyio

HEADER = "x-hotprefix-strategy"
LONG = "x" * 5000
"""More tokens than the scripted model's context has."""


async def send(server: Server, text: str = "hi", header: str | None = None, **fields: Any) -> httpx.Response:
    body = {
        "model": "scripted",
        "messages": [{"role": "system", "content": "be"}, {"role": "user", "content": text}],
    }
    headers = {} if header is None else {HEADER: header}
    return await server.client.post("/v1/chat/completions", json=body | fields, headers=headers)


def choice(server: Server) -> StrategyChoice:
    chosen = server.engine.seen[-1].strategy
    assert chosen is not None
    return chosen


async def test_without_a_wish_there_is_no_choice_and_no_header(server: Server) -> None:
    response = await send(server)
    assert response.status_code == 200
    assert server.engine.seen[-1].strategy is None
    assert HEADER not in response.headers
    assert "x-hotprefix-dropped-tokens" not in response.headers


async def test_the_header_reaches_the_engine_with_the_length_of_the_system_prompt(server: Server) -> None:
    response = await send(server, header="window; window=512; sinks=8; pin=system,40-60")
    assert response.status_code == 200
    system = len("system: be")
    wanted = StrategyChoice(StrategyName.WINDOW, 512, 8, pins=((40, 60),), system=system)
    assert choice(server) == wanted
    assert response.headers[HEADER] == "window"
    assert response.headers["x-hotprefix-dropped-tokens"] == "0"


@pytest.mark.parametrize(
    "field",
    ["mixed; window=256; recent=32", {"type": "mixed", "window": 256, "recent": 32}],
)
async def test_the_body_field_says_the_same(server: Server, field: object) -> None:
    response = await send(server, kv_strategy=field)
    assert response.status_code == 200
    assert (choice(server).name, choice(server).window, choice(server).recent) == ("mixed", 256, 32)
    assert "x-hotprefix-ignored" not in response.headers


async def test_the_body_goes_before_the_header(server: Server) -> None:
    await send(server, header="window; window=512", kv_strategy="static")
    assert choice(server).name is StrategyName.STATIC


async def test_a_wish_ends_with_its_request(server: Server) -> None:
    await send(server, kv_strategy="window")
    await send(server)
    assert server.engine.seen[-1].strategy is None


@pytest.mark.parametrize("name", ["window", "mixed"])
async def test_prompts_beyond_the_context_pass_where_caches_are_cut(server: Server, name: str) -> None:
    refused = await send(server, LONG)
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "context_length_exceeded"
    assert (await send(server, LONG, header="static")).status_code == 400
    response = await send(server, LONG, header=name)
    assert response.status_code == 200
    assert response.json()["usage"]["prompt_tokens"] > 5000
    assert len(server.engine.seen[-1].prompt_ids) > 5000
    far = await send(server, LONG, header=name, max_tokens=200_000)
    assert far.status_code == 400
    assert "This server takes at most 131072 tokens" in far.json()["error"]["message"]


async def test_raw_prompts_and_other_dialects_too(server: Server) -> None:
    raw = await server.client.post(
        "/v1/completions", json={"model": "scripted", "prompt": LONG, "kv_strategy": "window"}
    )
    assert raw.status_code == 200
    assert choice(server).system == 0
    messages = {"model": "scripted", "max_tokens": 5, "messages": [{"role": "user", "content": LONG}]}
    headers = {HEADER: "window"}
    assert (await server.client.post("/v1/messages", json=messages, headers=headers)).status_code == 200
    assert choice(server).name is StrategyName.WINDOW
    responses = {"model": "scripted", "input": LONG}
    assert (await server.client.post("/v1/responses", json=responses, headers=headers)).status_code == 200
    assert choice(server).name is StrategyName.WINDOW


@pytest.mark.parametrize(
    "header,reason",
    [("sliding", "is no strategy; there are static"), ("window; size=9", "'size=9' is none of window=")],
)
async def test_a_bad_header_names_itself(server: Server, header: str, reason: str) -> None:
    response = await send(server, header=header)
    assert response.status_code == 400
    error = response.json()["error"]
    assert (error["param"], error["code"]) == (HEADER, "invalid_value")
    assert reason in error["message"]


@pytest.mark.parametrize(
    "field,reason",
    [
        (5, "should be a string or an object"),
        ({"window": 5}, "should have a 'type'"),
        ({"type": "window", "pin": [1]}, "should have a 'type', and numbers and strings"),
        ({"type": "window", "sinks": -1}, "sinks: '-1' is no number of tokens"),
        ("windows", "'windows' is no strategy"),
    ],
)
async def test_a_bad_field_names_itself(server: Server, field: object, reason: str) -> None:
    response = await send(server, kv_strategy=field)
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["param"] == "kv_strategy"
    assert reason in error["message"]


async def test_a_stream_tells_in_its_headers_what_was_done(server: Server) -> None:
    response = await send(server, header="window", stream=True)
    assert response.status_code == 200
    assert response.headers[HEADER] == "window"
