"""More than fits: everybody is served, and nobody's answer changes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import Server, serving

pytestmark = pytest.mark.model

SUBJECTS = ("a cat", "the sea", "a king", "two trees", "rain")
REQUESTS = 5


def tale(server: Server, number: int) -> tuple[Any, Any]:
    subject = SUBJECTS[number % len(SUBJECTS)]
    messages = [{"role": "user", "content": f"Tell me a story about {subject}, number {number // 2}."}]
    # Prompt and answer fill four or five blocks: of six, two such requests begin with two each.
    most = (84, 92, 100)[number % 3]
    answer = server.ask(messages=messages, max_tokens=most, ignore_eos=True, logprobs=True)
    return answer["choices"], answer["usage"]["completion_tokens"]


@pytest.fixture
def tiny(default_model: ModelManifest, tmp_path: Path) -> Iterator[Server]:
    """A server whose arena has six blocks for requests."""
    with serving(tmp_path, "--decode", "exact", "--kv-arena", "5M", "--max-running", "3") as server:
        yield server


def test_a_tiny_arena_gives_the_answers_of_a_large_one(server: Server, tiny: Server) -> None:
    with ThreadPoolExecutor(REQUESTS) as clients:
        found = list(clients.map(lambda number: tale(tiny, number), range(REQUESTS)))
        expected = list(clients.map(lambda number: tale(server, number), range(REQUESTS)))
    assert found == expected
    assert tiny.metric("num_preemptions_total") > 0
    assert tiny.metric("kv_evictions_total") > 0
    assert tiny.metric("kv_arena_bytes") <= tiny.metric("kv_arena_limit_bytes") <= 5 * 1024**2
    tiny.require_nothing_left()
    refused = tiny.post(messages=[{"role": "user", "content": "word " * 400}], max_tokens=1)
    assert refused.status_code == 400
    assert refused.json()["error"]["code"] == "context_length_exceeded"
    assert "--kv-arena" in refused.json()["error"]["message"]
