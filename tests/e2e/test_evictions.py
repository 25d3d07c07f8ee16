"""A full arena of a real server: what had to make room is said, and nothing else is."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import Server, serving

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def small(default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Room for a few thousand tokens."""
    with serving(tmp_path_factory.mktemp("small"), "--kv-arena", "64M", "--profile", "hotprefix") as server:
        yield server


def ask(server: Server, subject: str, question: str) -> httpx.Headers:
    rules = " ".join(f"Rule {n} about {subject}: be kind to {subject} number {n}." for n in range(60))
    messages = [{"role": "system", "content": rules}, {"role": "user", "content": question}]
    body = {"model": DEFAULT_MODEL, "messages": messages, "max_tokens": 2}
    response = httpx.post(f"{server.url}/v1/chat/completions", json=body, timeout=120)
    assert response.status_code == 200, response.text
    return response.headers


def test_what_had_to_make_room_is_proved(small: Server) -> None:
    assert ask(small, "hats", "Which?")["x-hotprefix-miss-reason"] == "COLD_FIRST_USE"
    assert ask(small, "hats", "Why?")["x-hotprefix-miss-reason"] == "NONE"
    for subject in ("doors", "walls", "lamps", "roofs", "boxes"):
        assert ask(small, subject, "Which?")["x-hotprefix-miss-reason"] in ("COLD_FIRST_USE", "NONE")
    lost = ask(small, "hats", "When?")
    assert (lost["x-hotprefix-miss-reason"], lost["x-hotprefix-miss-detail"]) == ("EVICTED", "CAPACITY")
    assert lost["x-hotprefix-evidence"] == "proved by the store's log"
    assert int(lost["x-hotprefix-lost-tokens"]) > 500
    assert ask(small, "hats", "Who?")["x-hotprefix-miss-reason"] == "NONE"
