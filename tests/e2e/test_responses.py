"""Chains of responses with the real model, through a kill -9."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import Server, serving

pytestmark = pytest.mark.model
PATH = "/compatible-mode/v1/responses"
RULES = " ".join(f"Rule {number}: shelf {number * 7} holds {number * 3} boxes." for number in range(90))
BLOCK = 32


def ask(server: Server, text: str, last: dict[str, Any] | None = None) -> dict[str, Any]:
    body = {"model": DEFAULT_MODEL, "instructions": RULES, "input": text, "temperature": 0}
    body |= {"max_output_tokens": 24, "truncation": "disabled"}
    if last is not None:
        body["previous_response_id"] = last["id"]
    headers = {"x-dashscope-session-cache": "enable"}
    response = server.client.post(PATH, json=body, headers=headers)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


def cache(document: dict[str, Any]) -> tuple[int, int]:
    """Tokens read and tokens created."""
    details = document["usage"]["x_details"][0]["prompt_tokens_details"]
    return details["cached_tokens"], details["cache_creation_input_tokens"]


def test_a_chain_hits_to_the_token_and_survives_a_kill(default_model: ModelManifest, tmp_path: Path) -> None:
    last: dict[str, Any] | None = None
    written = 0
    with serving(tmp_path) as server:
        for turn in range(3):
            hits, total = (
                server.metric("prefix_cache_hits_total"),
                last["usage"]["total_tokens"] if last else 0,
            )
            last = ask(server, f"How many boxes are on shelf {7 * turn}?", last)
            read, created = cache(last)
            assert read == written
            written += created
            assert written > 1024
            # What is behind the last item are the few tokens that open the answer.
            assert 0 < last["usage"]["input_tokens"] - written < 10
            # In truth all of the turn before was reused, its answer included.
            assert server.metric("prefix_cache_hits_total") - hits >= total - BLOCK
        server.signal(signal.SIGKILL)
        server.wait()
    assert last is not None
    with serving(tmp_path) as server:
        kept = server.client.get(f"{PATH}/{last['id']}").json()
        assert kept["output"] == last["output"]
        after = ask(server, "And on shelf 21?", last)
        assert cache(after)[0] == 0
        assert after["usage"]["input_tokens"] > last["usage"]["input_tokens"]
        again = ask(server, "And on shelf 28?", after)
        assert cache(again)[0] == cache(after)[1]
