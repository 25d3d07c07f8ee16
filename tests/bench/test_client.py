"""The client: what it sends, what it reads, and what it says when a server refuses."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from hotprefix.base.clock import SystemClock
from hotprefix.base.errors import HotprefixError
from hotprefix.bench.client import Answer, BenchClient, _first_model, connect
from tests.bench.answering import Answering, client_of


def ask(server: Answering, *arguments: Any, **options: Any) -> Answer:
    async def run() -> Answer:
        async with client_of(server, SystemClock()) as client:
            return await client.run(client.completion(*arguments, **options))

    return asyncio.run(run())


@pytest.mark.parametrize("stream", [True, False])
def test_completion(stream: bool) -> None:
    server = Answering()
    answer = ask(server, [1, 2, 3, 4], 5, stream=stream)
    body = server.asked[0]
    assert body["prompt"] == [1, 2, 3, 4]
    assert (body["max_tokens"], body["temperature"], body["ignore_eos"]) == (5, 0, True)
    assert body.get("stream", False) is stream
    assert answer.text == "a " * 5
    assert (answer.prompt_tokens, answer.cached_tokens, answer.completion_tokens) == (4, 2, 5)
    assert 0 < answer.first <= answer.total


def test_chat_reads_the_answer() -> None:
    async def run() -> Answer:
        async with client_of(Answering(), SystemClock()) as client:
            return await client.run(client.chat([{"role": "user", "content": "hello you"}], 3))

    answer = asyncio.run(run())
    assert answer.text == "b b b "
    assert answer.prompt_tokens == 9


def test_first_token_is_not_the_empty_role_chunk() -> None:
    """The clock moves with each reading: an empty delta must not be taken for a token."""

    class Ticking(SystemClock):
        readings = 0

        def now(self) -> float:
            self.readings += 1
            return float(self.readings)

    async def run() -> Answer:
        async with client_of(Answering(), Ticking()) as client:
            return await client.run(client.chat([{"role": "user", "content": "x"}], 2))

    answer = asyncio.run(run())
    assert (answer.first, answer.total) == (1.0, 2.0)


def test_refusal_is_told_in_the_servers_words() -> None:
    with pytest.raises(HotprefixError, match="answered 400: no such number"):
        ask(Answering(), [666], 1)


def test_error_in_a_stream_is_told() -> None:
    with pytest.raises(HotprefixError, match="broke off: the engine failed"):
        ask(Answering(), [667], 1)


def test_nobody_there() -> None:
    async def run() -> BenchClient:
        async with connect("http://127.0.0.1:9", SystemClock()) as client:
            return client

    with pytest.raises(HotprefixError, match=r"Nothing answers at http://127\.0\.0\.1:9"):
        asyncio.run(run())


def talk_to(answer: httpx.Response | httpx.TransportError) -> BenchClient:
    """A client whose server always answers so, or goes away."""

    def handle(request: httpx.Request) -> httpx.Response:
        if isinstance(answer, httpx.TransportError):
            raise answer
        return answer

    http = httpx.AsyncClient(transport=httpx.MockTransport(handle), base_url="http://server")
    return BenchClient(http, "model", SystemClock())


def test_a_server_that_goes_away_is_told() -> None:
    client = talk_to(httpx.ReadError("connection lost"))
    with pytest.raises(HotprefixError, match="broke off: connection lost"):
        asyncio.run(client.run(client.completion([1], 1)))


@pytest.mark.parametrize("content", [b"<html>", b"[]", b'{"data": []}', b'{"data": [{}]}'])
def test_what_is_no_model_server_is_told(content: bytes) -> None:
    with pytest.raises(HotprefixError, match="http://a/v1/models names no model"):
        _first_model("http://a", content)
