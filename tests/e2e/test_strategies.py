"""Strategies over HTTP, on the real model."""

from __future__ import annotations

import httpx
import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from tests.e2e.server import Server

pytestmark = pytest.mark.model

DOCUMENT = " ".join(f"Paragraph {number} tells of the number {number * 7}." for number in range(60))


def ask(server: Server, text: str, max_tokens: int = 4, **headers: str) -> httpx.Response:
    body = {"model": DEFAULT_MODEL, "prompt": text, "max_tokens": max_tokens, "temperature": 0}
    named = {f"x-hotprefix-{name}": value for name, value in headers.items()}
    return server.client.post("/v1/completions", json=body, headers=named)


def test_a_window_tells_what_it_dropped_and_leaves_the_cache_right(server: Server) -> None:
    answer = ask(server, DOCUMENT, strategy="window; window=256")
    assert answer.status_code == 200, answer.text
    usage = answer.json()["usage"]
    dropped = int(answer.headers["x-hotprefix-dropped-tokens"])
    assert usage["prompt_tokens"] > 600
    assert usage["prompt_tokens"] - 256 <= dropped < usage["prompt_tokens"]
    again = ask(server, DOCUMENT)
    assert again.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 256
    assert "x-hotprefix-dropped-tokens" not in again.headers


def test_static_refuses_with_the_numbers(server: Server) -> None:
    refused = ask(server, "Once upon a time", 9000, strategy="static")
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "context_length_exceeded"
    assert ask(server, "Once upon a time", 20, strategy="static").status_code == 200
