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
    observer.gauges(gauges({"ceiling": 7}, {"acme": 9, "other": 1}))
    observer.gauges(gauges({"ceiling": 8, "rejected": 3}, {"acme": 4}))
    return registry


def gauges(not_kept: dict[str, int], tenants: dict[str, int]) -> EngineGauges:
    blocks = {"free": 5, "in_use": 3, "pinned": 1, "cached": 1}
    return EngineGauges(2, 3, 1000, 4000, blocks, not_kept, tenants)


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
        ("kv_blocks", {"state": "cached"}, 1),
        ("kv_blocks", {"state": "pinned"}, 1),
        ("kv_not_kept_total", {"reason": "capacity"}, 0),
        ("kv_not_kept_total", {"reason": "ceiling"}, 8),
        ("kv_not_kept_total", {"reason": "replaced"}, 0),
        ("kv_not_kept_total", {"reason": "rejected"}, 3),
        ("kv_tenant_blocks", {"tenant": "acme"}, 4),
    ],
)
def test_value(registry: CollectorRegistry, name: str, labels: dict[str, str], value: float) -> None:
    assert registry.get_sample_value(f"hotprefix_{name}", labels) == pytest.approx(value)


def tenants_in(registry: CollectorRegistry) -> dict[str, float]:
    (family,) = [found for found in registry.collect() if found.name == "hotprefix_kv_tenant_blocks"]
    return {sample.labels["tenant"]: sample.value for sample in family.samples}


def test_series_of_tenants_are_bounded_and_go_with_their_share() -> None:
    registry = CollectorRegistry()
    metrics = ServerMetrics(registry, version="1.2", model="m")
    metrics.gauges(gauges({}, {f"t{number:03}": number for number in range(250)}))
    found = tenants_in(registry)
    assert len(found) == 101
    assert found["@others"] == sum(range(150))
    assert found["t249"] == 249
    metrics.gauges(gauges({}, {"t000": 7}))
    assert tenants_in(registry) == {"t000": 7}
    metrics.gauges(gauges({}, {}))
    assert tenants_in(registry) == {}


def test_build_info(registry: CollectorRegistry) -> None:
    (family,) = [found for found in registry.collect() if found.name == "hotprefix_build_info"]
    assert family.samples[0].labels["version"] == "1.2"
    assert family.samples[0].labels["model"] == "m"
