"""What the server holds and does now: the very figures of `/metrics`."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from prometheus_client import CollectorRegistry

_PREFIX = "hotprefix_"
_SINGLE = {
    "running": "num_requests_running",
    "waiting": "num_requests_waiting",
    "arena_bytes": "kv_arena_bytes",
    "arena_limit_bytes": "kv_arena_limit_bytes",
    "prompt_tokens": "prompt_tokens_total",
    "generated_tokens": "generation_tokens_total",
    "queried_tokens": "prefix_cache_queries_total",
    "hit_tokens": "prefix_cache_hits_total",
    "preemptions": "num_preemptions_total",
    "evictions": "kv_evictions_total",
    "restored_tokens": "restored_tokens_total",
}
_LABELLED = {
    "blocks": "kv_blocks",
    "not_kept": "kv_not_kept_total",
    "finished": "request_success_total",
    "tenant_blocks": "kv_tenant_blocks",
    "bytes_per_token": "kv_bytes_per_token",
}
_TIERS = {
    "bytes": "tier_bytes",
    "limit": "tier_limit_bytes",
    "blocks": "tier_blocks",
    "up": "tier_up",
    "hits": "tier_hits_total",
    "misses": "tier_misses_total",
    "errors": "tier_errors_total",
    "damaged": "tier_damaged_total",
    "dropped": "tier_dropped_total",
    "read_bytes": "tier_read_bytes_total",
    "read_seconds": "tier_read_seconds_total",
    "written_bytes": "tier_written_bytes_total",
    "write_seconds": "tier_write_seconds_total",
}


def engine_state(registry: CollectorRegistry) -> dict[str, Any]:
    """Gauges and counters since the start; a metric that is not there is null."""
    single: dict[str, float] = {}
    labelled: dict[str, dict[str, float]] = defaultdict(dict)
    for family in registry.collect():
        for sample in family.samples:
            name = sample.name.removeprefix(_PREFIX)
            if len(sample.labels) == 1:
                labelled[name][next(iter(sample.labels.values()))] = sample.value
            elif not sample.labels:
                single[name] = sample.value
    state: dict[str, Any] = {field: single.get(name) for field, name in _SINGLE.items()}
    state |= {field: labelled.get(name, {}) for field, name in _LABELLED.items()}
    tiers = labelled.get(_TIERS["bytes"], {})
    state["tiers"] = [
        {"name": tier} | {field: labelled[name].get(tier) for field, name in _TIERS.items()} for tier in tiers
    ]
    return state
