"""Learns between recency and frequency, after LeCaR (Vietri et al., HotStorage 2018).

Two experts, LRU and LFU, each name a victim. The one to follow is drawn by weight. An evicted
block that is computed again soon after is a regret of the expert that gave it up, and its
weight falls. Chat traffic teaches recency, API traffic with a few hot prompts frequency.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from random import Random

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockKey
from hotprefix.kv.node import Node
from hotprefix.kv.policy.base import CandidateHeap
from hotprefix.kv.policy.lru import by_recency

LEARNING_RATE = 0.45
DISCOUNT_BASE = 0.005
"""Both constants are the paper's; a regret fades to `DISCOUNT_BASE` over one capacity."""
LEAST_WEIGHT = 0.01
"""No expert is ever silenced: traffic changes."""


def by_frequency(node: Node) -> tuple[int, ...]:
    """Rank: uses, then the tick of the last use."""
    return (node.hits, node.touched)


class AdaptivePolicy:
    """Follows LRU or LFU, whichever has been regretted less."""

    name = "adaptive"

    def __init__(self, capacity: int, random: Random) -> None:
        self._capacity = max(1, capacity)
        self._random = random
        self._experts = (CandidateHeap(by_recency), CandidateHeap(by_frequency))
        # What each expert gave up lately: when, and how often it had been used.
        self._ghosts: tuple[OrderedDict[BlockKey, tuple[int, int]], ...] = (OrderedDict(), OrderedDict())
        self._weights = [0.5, 0.5]
        self._evictions = 0

    @property
    def weights(self) -> tuple[float, float]:
        """Trust in LRU and in LFU; they add up to 1."""
        return self._weights[0], self._weights[1]

    def __len__(self) -> int:
        return len(self._experts[0])

    def inserted(self, node: Node) -> None:
        for expert, ghosts in enumerate(self._ghosts):
            ghost = ghosts.pop(node.key, None)
            if ghost is not None:
                evicted_at, hits = ghost
                # Its uses count on: a hot block would else look new each time it comes back.
                node.hits = hits
                self._regret(expert, self._evictions - evicted_at)

    def touched(self, node: Node) -> None:
        for heap in self._experts:
            if node in heap:
                heap.add(node)

    def removed(self, node: Node) -> None:
        """Regret is noted in `pop`; a removal that nobody chose teaches nothing."""

    def add(self, node: Node) -> None:
        for heap in self._experts:
            heap.add(node)

    def discard(self, node: Node) -> None:
        for heap in self._experts:
            heap.discard(node)

    def peek(self) -> Node | None:
        return self._experts[0].peek()

    def pop(self, asker: BlockKey | None = None) -> Node:
        choices = [heap.peek() for heap in self._experts]
        expert = 0 if self._random.random() < self._weights[0] else 1
        victim = choices[expert]
        if victim is None:
            raise LogicError("there is no candidate for eviction")
        self.discard(victim)
        self._evictions += 1
        if choices[0] is not choices[1]:
            ghosts = self._ghosts[expert]
            ghosts[victim.key] = (self._evictions, victim.hits)
            if len(ghosts) > self._capacity:
                ghosts.popitem(last=False)
        return victim

    def _regret(self, expert: int, age: int) -> None:
        loss = DISCOUNT_BASE ** (age / self._capacity)
        self._weights[expert] *= math.exp(-LEARNING_RATE * loss)
        total = sum(self._weights)
        low = LEAST_WEIGHT
        first = min(1 - low, max(low, self._weights[0] / total))
        self._weights = [first, 1 - first]
