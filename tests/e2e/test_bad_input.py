"""What can't be served gets a clear answer or a clean close, and leaves nothing behind."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from tests.e2e.server import CHAT, Server

pytestmark = pytest.mark.model

HELLO = [{"role": "user", "content": "Hello!"}]
MEGABYTES = 10_000_000


def require_error(response: httpx.Response, status: int, code: str, param: str | None = None) -> None:
    """OpenAI's envelope, with words for people in it."""
    assert response.status_code == status, response.text
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["code"], error["param"]) == (code, param)
    assert error["type"] == "invalid_request_error"
    assert 10 < len(error["message"]) < 500
    assert error["message"][-1] == "."
    assert response.headers["x-request-id"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"max_tokens": -1}, "invalid_value", "max_tokens"),
        ({"max_tokens": "many"}, "invalid_type", "max_tokens"),
        ({"max_tokens": 1.5}, "invalid_type", "max_tokens"),
        ({"max_completion_tokens": 0}, "invalid_value", "max_completion_tokens"),
        ({"max_tokens": 9000}, "context_length_exceeded", "messages"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"messages": None}, "invalid_type", "messages"),
        ({"messages": "Hello!"}, "invalid_type", "messages"),
        ({"messages": [{"role": "king", "content": "x"}]}, "invalid_value", "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "missing_required_parameter", "messages[0].content"),
        ({"messages": [{"role": "user", "content": 7}]}, "invalid_type", "messages[0].content"),
        ({"messages": [{"role": "user", "content": "a " * 9000}]}, "context_length_exceeded", "messages"),
        ({"messages": [{"role": "user", "content": "x" * MEGABYTES}]}, "context_length_exceeded", "messages"),
        (
            {"messages": [{"role": "user", "content": "é汉" * (MEGABYTES // 5)}]},
            "context_length_exceeded",
            "messages",
        ),
        ({"messages": HELLO * 10_001}, "invalid_value", "messages"),
        ({"temperature": "hot"}, "invalid_type", "temperature"),
        ({"temperature": 3}, "invalid_value", "temperature"),
        ({"n": 1000}, "invalid_value", "n"),
        ({"stop": [""]}, "invalid_value", "stop[0]"),
        ({"logit_bias": {"-1": 1}}, "invalid_value", "logit_bias"),
        ({"tools": [{"type": "function"}]}, "missing_required_parameter", "tools[0].function"),
        ({"tool_choice": "required"}, "invalid_value", "tool_choice"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_fields(server: Server, stream: bool, fields: dict[str, Any], code: str, param: str) -> None:
    response = server.post(**{"messages": HELLO, "stream": stream} | fields)
    require_error(response, 400, code, param)


def test_a_schema_that_is_none(server: Server) -> None:
    schema = {"name": "x", "schema": {"type": "no such type"}}
    response = server.post(messages=HELLO, response_format={"type": "json_schema", "json_schema": schema})
    assert response.status_code == 400
    assert response.json()["error"]["param"] == "response_format"


def test_a_model_that_is_not_served(server: Server) -> None:
    require_error(server.post(messages=HELLO, model="gpt-5"), 404, "model_not_found", "model")
    require_error(server.client.get("/v1/models/gpt-5"), 404, "model_not_found", "model")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b'{"model": NaN}',
        b"\xff\xfe\x00",
        b'{"model": "m", "messages": [{"role": "user", "content": "\\ud800"}]}',
        b'{"model": "m", "messages": [{"role": "user", "content": "\\udc00\\ud800"}]}',
        b'{"model": "m", "messages": [{"role": "user", "content": "\xed\xa0\x80"}]}',
        b"x" * MEGABYTES,
        b"[" * MEGABYTES,
        b'{"a":' * (MEGABYTES // 5),
    ],
    ids=lambda body: f"{body[-12:]!r} {len(body)}",
)
def test_bodies_that_are_no_json(server: Server, body: bytes) -> None:
    require_error(server.client.post(CHAT, content=body), 400, "invalid_json")


def test_a_body_over_the_limit(server: Server) -> None:
    response = server.client.post(CHAT, content=b"x" * (17 * 1024 * 1024))
    require_error(response, 413, "payload_too_large")


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", CHAT, 405, "method_not_allowed"),
        ("PUT", "/v1/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("POST", "/metrics", 405, "method_not_allowed"),
        ("GET", "/", 404, "unknown_url"),
        ("POST", "/v1/embeddings", 404, "unknown_url"),
        ("GET", "/v1/models/", 404, "model_not_found"),
    ],
)
def test_wrong_places(server: Server, method: str, path: str, status: int, code: str) -> None:
    param = "model" if code == "model_not_found" else None
    require_error(server.client.request(method, path), status, code, param)


BODY = json.dumps({"model": DEFAULT_MODEL, "messages": HELLO, "max_tokens": 1}).encode()
GOOD = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(BODY)}\r\n\r\n".encode() + BODY


@pytest.mark.parametrize(
    "sent",
    [
        b"GARBAGE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200,
        GOOD + b"\x00\x01GARBAGE\r\n\r\n",
        GOOD + b"NO SUCH VERSION/9\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n{}",
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nZZ\r\n{}",
    ],
    ids=lambda sent: repr(sent[-24:]),
)
def test_bytes_that_are_no_http(server: Server, sent: bytes) -> None:
    """The connection is closed with a 400; what came before it may still be answered."""
    with socket.create_connection(server.address, timeout=60) as sock:
        sock.sendall(sent)
        answer = b"".join(iter(lambda: sock.recv(65536), b""))
    assert b"HTTP/1.1 400" in answer or b"HTTP/1.1 404" in answer
    assert server.ask(messages=HELLO, max_tokens=1)


@pytest.mark.parametrize("cut", [10, 60, len(GOOD) - 1])
def test_half_sent_requests(server: Server, cut: int) -> None:
    for _ in range(20):
        with socket.create_connection(server.address, timeout=60) as sock:
            sock.sendall(GOOD[:cut])
    with socket.create_connection(server.address, timeout=60) as sock:
        sock.sendall(GOOD[:cut])
        sock.shutdown(socket.SHUT_WR)
        assert b"200 OK" not in b"".join(iter(lambda: sock.recv(65536), b""))
    assert server.ask(messages=HELLO, max_tokens=1)
