"""Eviction policies by name."""

from __future__ import annotations

from collections.abc import Callable

from hotprefix.kv.policy.adaptive import AdaptivePolicy
from hotprefix.kv.policy.base import EvictionPolicy
from hotprefix.kv.policy.lru import LruPolicy
from hotprefix.kv.policy.slru import SlruPolicy

POLICIES: dict[str, Callable[[int], EvictionPolicy]] = {
    "lru": lambda capacity: LruPolicy(),
    "slru": SlruPolicy,
    "adaptive": AdaptivePolicy,
}
"""Name → constructor; the argument is the number of blocks that the cache may hold."""

__all__ = ["POLICIES", "EvictionPolicy"]
