"""What answers there may be no server of ours."""

from __future__ import annotations

import httpx
import pytest

from hotprefix.app.warm_file import Prefix
from hotprefix.app.warming import CannotWarm, client_of, credentials, warmed
from hotprefix.base.clock import ManualClock

pytestmark = pytest.mark.anyio
PREFIX = Prefix("f", "/v1/chat/completions", {"messages": []})
MODELS = {"data": [{"id": "m"}]}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize("models", ["hello", {}, [], {"data": []}, {"data": [{}]}, {"data": [7]}, None])
async def test_a_list_of_models_that_is_none(models: object) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json=models)

    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://other") as client:
        with pytest.raises(CannotWarm, match="http://other/v1/models does not answer as Hotprefix would"):
            _ = [one async for one in warmed(client, [PREFIX], ManualClock(0.0))]


@pytest.mark.parametrize("body", [b"<html>", b"{}", b"[]", b"7", b'{"usage": null}', b'{"usage": {}}'])
async def test_an_answer_that_is_none(body: bytes) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        is_list = request.url.path == "/v1/models"
        return httpx.Response(200, json=MODELS) if is_list else httpx.Response(200, content=body)

    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, base_url="http://other") as client:
        with pytest.raises(CannotWarm, match="does not answer as Hotprefix would"):
            _ = [one async for one in warmed(client, [PREFIX], ManualClock(0.0))]


@pytest.mark.parametrize("url", ["http://a:b:c", "http://[::1", "http://\0"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(CannotWarm, match="is no address of a server"):
        client_of(url, None)


def test_what_is_no_key() -> None:
    assert credentials(None) == credentials("") == {}
    assert credentials("k") == {"authorization": "Bearer k"}
    for key in ("é", "a\nb"):
        with pytest.raises(CannotWarm, match="characters that no key has"):
            credentials(key)
