"""The metrics count what the answers say."""

from __future__ import annotations

import pytest

from tests.e2e.server import Sample, Server

pytestmark = pytest.mark.model

MESSAGES = [{"role": "user", "content": "Why is the sky blue? " * 8}]


def test_counters_agree_with_the_usage(server: Server) -> None:
    server.require_nothing_left()
    before = server.metrics()
    wanted = (
        {"max_tokens": 9},
        {"max_tokens": 9},
        {"max_tokens": 3, "n": 3, "temperature": 1.0},
        {"max_tokens": 1},
    )
    usages = [server.ask(messages=MESSAGES, ignore_eos=True, **fields)["usage"] for fields in wanted]
    usages.append(server.chunks(messages=[*MESSAGES, *MESSAGES], max_tokens=4)[-1]["usage"])
    server.require_nothing_left()
    after = server.metrics()

    def grown(name: str, **labels: str) -> float:
        key: Sample = (f"hotprefix_{name}", frozenset(labels.items()))
        return after[key] - before[key]

    prompts = sum(usage["prompt_tokens"] for usage in usages)
    hits = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
    drawn = sum(usage["completion_tokens"] for usage in usages)
    assert hits > 100
    assert grown("prompt_tokens_total") == grown("prefix_cache_queries_total") == prompts
    assert grown("request_prompt_tokens_sum") == prompts
    assert grown("prefix_cache_hits_total") == hits
    assert grown("generation_tokens_total") == grown("request_generation_tokens_sum") == drawn
    ended = [grown("request_success_total", finished_reason=reason) for reason in ("stop", "length")]
    assert sum(ended) == len(usages)
    for histogram in (
        "time_to_first_token_seconds",
        "e2e_request_latency_seconds",
        "request_queue_time_seconds",
    ):
        assert grown(f"{histogram}_count") == len(usages)
    # Seven choices, and every token but the first of each has a gap before it.
    assert grown("inter_token_latency_seconds_count") == drawn - 7


def test_blocks_add_up_to_the_arena(server: Server) -> None:
    server.ask(messages=MESSAGES, max_tokens=2)
    server.require_nothing_left()
    found = server.metrics()
    blocks = {
        dict(labels)["state"]: value
        for (name, labels), value in found.items()
        if name == "hotprefix_kv_blocks"
    }
    assert set(blocks) == {"free", "in_use", "pinned", "cached"}
    assert blocks["cached"] > 0
    limit = found["hotprefix_kv_arena_limit_bytes", frozenset()]
    used = found["hotprefix_kv_arena_bytes", frozenset()]
    assert 0 < used <= limit <= 2 * 1024**3
    assert used / limit == pytest.approx(1 - blocks["free"] / sum(blocks.values()))
    assert found["hotprefix_kv_cache_usage_perc", frozenset()] == 0
    assert all(name.startswith(("hotprefix_", "process_", "python_")) for name, _ in found)
