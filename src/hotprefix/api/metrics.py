"""Prometheus metrics, named after vLLM's conventions."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from hotprefix.engine.observer import EngineGauges
from hotprefix.engine.request import FinishReason, Timings, Usage
from hotprefix.kv.accounts import Outcome

_FIRST_TOKEN = (
    0.002,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1,
    2.5,
    5,
    7.5,
    10,
    20,
    40,
    80,
    160,
)
_GAP = (0.002, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 10)
_REQUEST = (0.05, 0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480)
_QUEUE = (0.001, 0.005, 0.01, 0.05, 0.1, 0.3, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 240)
_TOKENS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000)


_TENANTS = 100
"""Tenants with a series of their own; the others are counted together."""
OTHERS = "@others"
"""No tenant's name: it can't begin so."""


class ServerMetrics:
    """An `EngineObserver` that counts into the given registry."""

    def __init__(self, registry: CollectorRegistry, *, version: str, model: str) -> None:
        self.registry = registry
        self._reported: dict[str, int] = {}
        self._named: set[str] = set()
        self._add_counters(registry)
        self._add_histograms(registry)
        self._add_gauges(registry)
        info = Gauge("hotprefix_build_info", "Always 1.", ["version", "model", "python"], registry=registry)
        info.labels(version, model, platform.python_version()).set(1)

    def keeps(self, precision: str, bytes_per_token: float) -> None:
        """How the engine keeps keys and values."""
        self._per_token.labels(precision).set(bytes_per_token)

    def _add_counters(self, registry: CollectorRegistry) -> None:
        def counter(name: str, text: str) -> Counter:
            return Counter(f"hotprefix_{name}", text, registry=registry)

        self._prompt_tokens = counter("prompt_tokens", "Tokens of prompts, cached ones included.")
        self._generation_tokens = counter("generation_tokens", "Tokens drawn.")
        self._queries = counter("prefix_cache_queries", "Tokens that the prefix cache was asked for.")
        self._hits = counter("prefix_cache_hits", "Tokens that the prefix cache had.")
        self._preemptions = counter("num_preemptions", "Requests put back into the waiting line.")
        self._evictions = counter("kv_evictions", "Cached KV blocks dropped to make room.")
        self._not_kept = Counter(
            "hotprefix_kv_not_kept", "KV blocks dropped or refused, by why.", ["reason"], registry=registry
        )
        for outcome in Outcome:
            self._not_kept.labels(outcome.value)
        finished = Counter(
            "hotprefix_request_success", "Requests that ended.", ["finished_reason"], registry=registry
        )
        self._finished = {reason: finished.labels(reason.value) for reason in FinishReason}

    def _add_histograms(self, registry: CollectorRegistry) -> None:
        def histogram(name: str, text: str, buckets: Sequence[float]) -> Histogram:
            return Histogram(f"hotprefix_{name}", text, buckets=buckets, registry=registry)

        self._first_token = histogram(
            "time_to_first_token_seconds", "From submission to token 1.", _FIRST_TOKEN
        )
        self._gap = histogram("inter_token_latency_seconds", "Between two tokens of one answer.", _GAP)
        self._total = histogram("e2e_request_latency_seconds", "From submission to the end.", _REQUEST)
        self._queued = histogram("request_queue_time_seconds", "Waiting for admission.", _QUEUE)
        self._request_prompt = histogram("request_prompt_tokens", "Tokens of a prompt.", _TOKENS)
        self._request_generation = histogram("request_generation_tokens", "Tokens of an answer.", _TOKENS)

    def _add_gauges(self, registry: CollectorRegistry) -> None:
        def gauge(name: str, text: str) -> Gauge:
            return Gauge(f"hotprefix_{name}", text, registry=registry)

        self._running = gauge("num_requests_running", "Requests being worked on.")
        self._waiting = gauge("num_requests_waiting", "Requests in the waiting line.")
        self._usage = gauge("kv_cache_usage_perc", "Share of the KV blocks that requests hold, 0 to 1.")
        self._arena = gauge("kv_arena_bytes", "Bytes that the KV arena holds.")
        self._arena_limit = gauge("kv_arena_limit_bytes", "Bytes that the KV arena may grow to.")
        self._per_token = Gauge(
            "hotprefix_kv_bytes_per_token", "Bytes of KV of a token.", ["precision"], registry=registry
        )
        self._blocks = Gauge("hotprefix_kv_blocks", "KV blocks by state.", ["state"], registry=registry)
        self._tenant_blocks = Gauge(
            "hotprefix_kv_tenant_blocks",
            "Cached KV blocks of tenants with a share of the cache.",
            ["tenant"],
            registry=registry,
        )

    def request_admitted(self, queued_seconds: float) -> None:
        self._queued.observe(queued_seconds)

    def prompt_matched(self, prompt_tokens: int, cached_tokens: int) -> None:
        self._prompt_tokens.inc(prompt_tokens)
        self._request_prompt.observe(prompt_tokens)
        self._queries.inc(prompt_tokens)
        self._hits.inc(cached_tokens)

    def first_token(self, seconds: float) -> None:
        self._first_token.observe(seconds)

    def tokens(self, count: int, gaps: Sequence[float] = ()) -> None:
        self._generation_tokens.inc(count)
        observe = self._gap.observe
        for gap in gaps:
            observe(gap)

    def finished(self, reason: FinishReason, timings: Timings, usage: Usage) -> None:
        self._finished[reason].inc()
        self._total.observe(timings.total)
        self._request_generation.observe(usage.completion_tokens)

    def preempted(self) -> None:
        self._preemptions.inc()

    def evicted(self, blocks: int) -> None:
        self._evictions.inc(blocks)

    def gauges(self, gauges: EngineGauges) -> None:
        self._running.set(gauges.running)
        self._waiting.set(gauges.waiting)
        self._arena.set(gauges.arena_bytes)
        self._arena_limit.set(gauges.arena_limit_bytes)
        total = sum(gauges.blocks.values())
        in_use = gauges.blocks.get("in_use", 0)
        self._usage.set(in_use / total if total else 0.0)
        for state, count in gauges.blocks.items():
            self._blocks.labels(state).set(count)
        for reason, total in gauges.not_kept.items():
            self._not_kept.labels(reason).inc(total - self._reported.get(reason, 0))
            self._reported[reason] = total
        self._set_tenants(gauges.tenant_blocks)

    def _set_tenants(self, blocks: Mapping[str, int]) -> None:
        """The tenants with the most blocks by name, the rest as one; who has no share any more goes."""
        order = sorted(blocks, key=lambda tenant: (-blocks[tenant], tenant))
        shown = {tenant: blocks[tenant] for tenant in order[:_TENANTS]}
        if rest := order[_TENANTS:]:
            shown[OTHERS] = sum(blocks[tenant] for tenant in rest)
        for tenant in self._named - shown.keys():
            self._tenant_blocks.remove(tenant)
        for tenant, count in shown.items():
            self._tenant_blocks.labels(tenant).set(count)
        self._named = set(shown)
