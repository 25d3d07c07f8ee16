from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from hotprefix.api.metrics import ServerMetrics
from hotprefix.engine.observer import EngineGauges, EngineObserver
from hotprefix.engine.request import FinishReason, Timings, Usage


@pytest.fixture
def registry() -> CollectorRegistry:
    registry = CollectorRegistry()
    observer: EngineObserver = ServerMetrics(registry, version="1.2", model="m")
    observer.request_admitted(0.02)
    observer.prompt_matched(100, 64)
    observer.first_token(0.03)
    observer.tokens(3, [0.01, 0.02])
    observer.tokens(1)
    observer.finished(FinishReason.LENGTH, Timings(0.02, 0.03, 1.5), Usage(100, 64, 4))
    observer.preempted()
    observer.evicted(7)
    observer.gauges(EngineGauges(2, 3, 1000, 4000, {"free": 5, "in_use": 3, "cached": 2}))
    return registry


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        ("prompt_tokens_total", {}, 100),
        ("generation_tokens_total", {}, 4),
        ("prefix_cache_queries_total", {}, 100),
        ("prefix_cache_hits_total", {}, 64),
        ("request_success_total", {"finished_reason": "length"}, 1),
        ("request_success_total", {"finished_reason": "stop"}, 0),
        ("num_preemptions_total", {}, 1),
        ("kv_evictions_total", {}, 7),
        ("time_to_first_token_seconds_sum", {}, 0.03),
        ("inter_token_latency_seconds_count", {}, 2),
        ("inter_token_latency_seconds_sum", {}, 0.03),
        ("e2e_request_latency_seconds_sum", {}, 1.5),
        ("request_queue_time_seconds_sum", {}, 0.02),
        ("request_prompt_tokens_sum", {}, 100),
        ("request_generation_tokens_sum", {}, 4),
        ("num_requests_running", {}, 2),
        ("num_requests_waiting", {}, 3),
        ("kv_cache_usage_perc", {}, 0.3),
        ("kv_arena_bytes", {}, 1000),
        ("kv_arena_limit_bytes", {}, 4000),
        ("kv_blocks", {"state": "cached"}, 2),
    ],
)
def test_value(registry: CollectorRegistry, name: str, labels: dict[str, str], value: float) -> None:
    assert registry.get_sample_value(f"hotprefix_{name}", labels) == pytest.approx(value)


def test_build_info(registry: CollectorRegistry) -> None:
    (family,) = [found for found in registry.collect() if found.name == "hotprefix_build_info"]
    assert family.samples[0].labels["version"] == "1.2"
    assert family.samples[0].labels["model"] == "m"
