"""How a server ends, and that it can start again."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import CHAT, Server, serving, until

pytestmark = pytest.mark.model

ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "Tell me everything."}], "ignore_eos": True}


def streamed(server: Server, max_tokens: int) -> Any:
    body = {"model": DEFAULT_MODEL, "stream": True, "max_tokens": max_tokens} | ASKED
    return server.client.stream("POST", CHAT, json=body)


def events(response: httpx.Response) -> Iterator[Any]:
    """What a stream says, `[DONE]` as None."""
    for line in response.iter_lines():
        if line:
            data = line.removeprefix("data: ")
            yield None if data == "[DONE]" else json.loads(data)


@pytest.fixture
def restarted(default_model: ModelManifest, tmp_path: Path) -> Iterator[Server]:
    """A server on the port and state of another one that was killed in the middle of an answer."""
    with serving(tmp_path / "killed") as killed, streamed(killed, 7000) as response:
        port = killed.address[1]
        stream = events(response)
        assert next(stream)["choices"]
        killed.signal(signal.SIGKILL)
        with pytest.raises(httpx.TransportError):
            list(stream)
        assert killed.wait() == -signal.SIGKILL
    with serving(tmp_path / "again", "--port", str(port)) as server:
        assert server.address[1] == port
        yield server


def test_streams_finish_and_others_are_refused(restarted: Server) -> None:
    server = restarted
    with streamed(server, 150) as response:
        stream = events(response)
        assert next(stream)["choices"]
        server.signal(signal.SIGTERM)
        until(lambda: server.client.get("/readyz").status_code == 503, lambda: "it does not drain")
        late = server.post(**ASKED)
        assert late.status_code == 503
        assert late.json()["error"]["code"] == "shutting_down"
        assert late.headers["connection"] == "close"
        *rest, last, done = stream
    assert len(rest) > 50
    assert last["choices"][0]["finish_reason"] == "length"
    assert done is None
    assert server.wait() == 0
    with pytest.raises(httpx.TransportError):
        server.client.get("/healthz")


def test_what_does_not_finish_in_time_is_told_so(default_model: ModelManifest, tmp_path: Path) -> None:
    with serving(tmp_path, "--drain-timeout", "0.1") as server:
        with streamed(server, 7000) as response:
            stream = events(response)
            assert next(stream)["choices"]
            server.signal(signal.SIGTERM)
            *_, last, done = stream
        assert last["error"]["code"] == "shutting_down"
        assert done is None
        assert server.wait() == 0
