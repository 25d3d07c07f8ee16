"""Metrics of the tiers, read when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hotprefix.tiers.tier_stats import TierStats

_GAUGES: dict[str, tuple[str, Callable[[TierStats], float]]] = {
    "bytes": ("Bytes that a tier holds.", lambda stats: stats.bytes),
    "limit_bytes": ("Bytes that a tier may hold.", lambda stats: stats.limit),
    "blocks": ("KV blocks that a tier holds.", lambda stats: stats.records),
    "up": ("1 while a tier is used, 0 while it rests after failures.", lambda stats: not stats.is_open),
}
_COUNTERS: dict[str, tuple[str, Callable[[TierStats], float]]] = {
    "hits": ("KV blocks that a tier was asked for and had.", lambda stats: stats.hits),
    "misses": ("KV blocks that a tier was asked for and had not.", lambda stats: stats.misses),
    "errors": ("Calls of a tier that failed; each was a miss.", lambda stats: stats.errors),
    "dropped": ("KV blocks that had to go for want of room.", lambda stats: stats.dropped),
    "damaged": ("KV blocks that were found damaged, and dropped.", lambda stats: stats.damaged),
    "read_bytes": ("Bytes read from a tier.", lambda stats: stats.read_bytes),
    "read_seconds": ("Seconds spent reading from a tier.", lambda stats: stats.read_seconds),
    "written_bytes": ("Bytes written to a tier.", lambda stats: stats.written_bytes),
    "write_seconds": ("Seconds spent writing to a tier.", lambda stats: stats.write_seconds),
}


class TierCollector(Collector):
    """`hotprefix_tier_…{tier}` of whatever `stats` says, the tokens that came back, and the blocks that
    found no room on their way."""

    def __init__(
        self,
        stats: Callable[[], Mapping[str, TierStats]],
        restored: Callable[[], int],
        unsaved: Callable[[], int],
    ) -> None:
        self._stats = stats
        self._restored = restored
        self._unsaved = unsaved

    def collect(self) -> Iterator[Metric]:
        tiers = self._stats()
        for name, (text, read) in _GAUGES.items():
            gauge = GaugeMetricFamily(f"hotprefix_tier_{name}", text, labels=["tier"])
            for tier, stats in tiers.items():
                gauge.add_metric([tier], read(stats))
            yield gauge
        for name, (text, read) in _COUNTERS.items():
            counter = CounterMetricFamily(f"hotprefix_tier_{name}", text, labels=["tier"])
            for tier, stats in tiers.items():
                counter.add_metric([tier], read(stats))
            yield counter
        yield CounterMetricFamily(
            "hotprefix_restored_tokens", "Tokens whose KV came back from a tier.", value=self._restored()
        )
        yield CounterMetricFamily(
            "hotprefix_unsaved_blocks",
            "KV blocks that were dropped because writing to the tiers was behind.",
            value=self._unsaved(),
        )
