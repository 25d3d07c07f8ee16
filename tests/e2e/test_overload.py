"""More than fits: everybody is served, and nobody's answer changes."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import Server, serving

pytestmark = pytest.mark.model

SUBJECTS = ("a cat", "the sea", "a king", "two trees", "rain")
REQUESTS = 8


def tale(server: Server, number: int) -> tuple[Any, Any]:
    subject = SUBJECTS[number % len(SUBJECTS)]
    messages = [{"role": "user", "content": f"Tell me a story about {subject}, number {number // 2}."}]
    # Prompt and answer fill four or five blocks: of six, two such requests begin with two each.
    most = (84, 92, 100)[number % 3]
    answer = server.ask(messages=messages, max_tokens=most, ignore_eos=True, logprobs=True)
    return answer["choices"], answer["usage"]["completion_tokens"]


def test_a_tiny_arena_gives_the_answers_of_a_large_one(
    default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Exact decoding: what a preempted request computes again is what it had been."""
    folder = tmp_path_factory.mktemp("overload")
    tiny_options = ("--decode", "exact", "--kv-arena", "5M", "--max-running", "3")
    with (
        serving(folder / "tiny", *tiny_options) as tiny,
        serving(folder / "large", "--decode", "exact") as large,
        ThreadPoolExecutor(REQUESTS) as clients,
    ):
        found = list(clients.map(lambda number: tale(tiny, number), range(REQUESTS)))
        expected = list(clients.map(lambda number: tale(large, number), range(REQUESTS)))
        assert found == expected
        assert tiny.metric("num_preemptions_total") > 0
        assert tiny.metric("kv_evictions_total") > 0
        assert tiny.metric("kv_arena_bytes") <= tiny.metric("kv_arena_limit_bytes") <= 5 * 1024**2
        tiny.require_nothing_left()
        prompt = {"messages": [{"role": "user", "content": "word " * 400}]}
        refused = tiny.post(**prompt, max_tokens=1)
        assert refused.status_code == 400
        assert refused.json()["error"]["code"] == "context_length_exceeded"
        assert "--kv-arena" in refused.json()["error"]["message"]
