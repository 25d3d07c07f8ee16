"""Learns from the traffic what is worth keeping; where it can't tell blocks apart, it is LRU.

Blocks are classed by how often they were used (their uses before an eviction included) and by
whether a longer prompt ever went on behind them. For each class it learns at which ages its
blocks come back, and gives up the candidate whose keeping promises least per tick. Chat traffic
so gets recency, API traffic with a few hot prompts frequency, and a prompt's last, ragged block goes early.

A shadow of LRU runs beside it on a sample of the keys. A policy that falls behind it is not
followed for a while, so the hits lost to plain LRU are bounded.
"""

from __future__ import annotations

from collections import OrderedDict

from hotprefix.base.ids import BlockKey
from hotprefix.kv.node import Node
from hotprefix.kv.policy.base import CandidateHeap
from hotprefix.kv.policy.lru_shadow import LruShadow
from hotprefix.kv.policy.reuse_stats import ReuseStats

MOST_USES = 3
"""More uses than these say nothing new."""
REMEMBERED = 4
"""Evicted blocks whose uses are remembered, in capacities."""
SAMPLES = 4096
"""About as many blocks are watched at most: of larger caches every second, fourth, …, by their keys."""
LEARN_EVERY = 0.5
RANK_EVERY = 0.25
"""Both in capacities of ticks."""
LEAST_LEARNED = 200
"""Ticks that learning waits for at least: a small cache would forget as fast as it learns."""
MOST_BEHIND = 0.02
MOST_AHEAD = 1.0
"""Hits, in capacities: so far behind LRU it is followed instead; more lead than this is forgotten."""
FIRST_REST = 4
LAST_REST = 256
"""For how many capacities of ticks LRU is followed; twice as long each time."""
_KINDS = 2 * (MOST_USES + 1)
# Bits of `Node.mark`: a block followed; it is watched; the rest is the uses before the last eviction.
_GONE_ON, _WATCHED, _USES = 1, 2, 2


class AdaptivePolicy:
    """The leaf that promises least goes first.

    All verbs cost O(log candidates), amortised; memory is O(capacity).
    """

    name = "adaptive"

    def __init__(self, capacity: int) -> None:
        self._capacity = max(1, capacity)
        self._stride = 1 << max(0, round(self._capacity / SAMPLES).bit_length() - 1)
        self._stats = ReuseStats(self._capacity, _KINDS)
        self._value_of = self._stats.value_of
        whole = self._capacity / self._stride
        self._shadow = LruShadow(int(whole))
        self._least_lead, self._most_lead = -MOST_BEHIND * whole, int(MOST_AHEAD * whole)
        self._candidates = CandidateHeap(self._rank)
        self._remembered: OrderedDict[BlockKey, int] = OrderedDict()
        # Watched blocks with the tick of their last use: here, and evicted ones, oldest first.
        self._watched: dict[Node, int] = {}
        self._gone: OrderedDict[BlockKey, tuple[int, int]] = OrderedDict()
        self._now = 0
        self._learn_at = self._rank_at = self._capacity
        self._trusted = True
        self._rest = FIRST_REST
        self._rests_until = 0

    @property
    def is_trusted(self) -> bool:
        """Whether what was learned is followed, not LRU."""
        return self._trusted

    def __len__(self) -> int:
        return len(self._candidates)

    def inserted(self, node: Node) -> None:
        self._now = node.touched
        key, parent = node.key, node.parent
        if parent is not None:
            parent.mark |= _GONE_ON
        uses = self._remembered.pop(key, None)
        node.mark = (0 if uses is None else (uses + 1) << _USES) | (_GONE_ON if node.children else 0)
        if self._stride > 1 and int.from_bytes(key[:4], "little") % self._stride:
            return
        if uses is not None:
            known = self._gone.pop(key, None)
            if known is not None:
                kind, since = known
                self._stats.reused(kind, self._now - since)
        node.mark |= _WATCHED
        self._watched[node] = self._now
        self._shadow.note(key, False)

    def touched(self, node: Node) -> None:
        tick = node.touched
        if tick != self._now:
            self._now = tick
            self._shadow.settle()
        if node.mark & _WATCHED:
            self._stats.reused(_kind(node, node.hits - 1), tick - self._watched[node])
            self._watched[node] = tick
            self._shadow.note(node.key, True)
        if node in self._candidates.members:
            self._candidates.add(node)

    def removed(self, node: Node) -> None:
        if node.mark & _WATCHED:
            self._gone[node.key] = (_kind(node, node.hits), self._watched.pop(node))
        remembered = self._remembered
        remembered[node.key] = node.hits + (node.mark >> _USES)
        if len(remembered) > REMEMBERED * self._capacity:
            remembered.popitem(last=False)

    def add(self, node: Node) -> None:
        self._candidates.add(node)

    def discard(self, node: Node) -> None:
        self._candidates.discard(node)

    def peek(self) -> Node | None:
        return self._candidates.peek()

    def pop(self, asker: BlockKey | None = None) -> Node:
        now = self._now
        if now >= self._learn_at:
            self._learn()
        if now >= self._rank_at:
            self._judge()
            self._rank_at = now + max(1, int(RANK_EVERY * self._capacity))
            self._candidates.rerank()
        return self._candidates.pop()

    def _rank(self, node: Node) -> tuple[float, int]:
        touched = node.touched
        if not self._trusted:
            return 0.0, touched
        return self._value_of(_kind(node, node.hits), self._now - touched), touched

    def _judge(self) -> None:
        """Follow what was learned, or LRU for a while if that is behind it."""
        shadow = self._shadow
        shadow.settle()
        if not self._trusted:
            shadow.lead = 0
            self._trusted = self._now >= self._rests_until
        elif shadow.lead < self._least_lead:
            self._trusted = False
            self._rests_until = self._now + self._rest * self._capacity
            self._rest = min(LAST_REST, 2 * self._rest)
        elif shadow.lead > self._most_lead:
            shadow.lead = self._most_lead

    def _learn(self) -> None:
        self._learn_at = self._now + max(LEAST_LEARNED, int(LEARN_EVERY * self._capacity))
        self._rank_at = self._now
        gone, most = self._gone, REMEMBERED * self._capacity // self._stride
        while gone:
            key, (kind, since) = next(iter(gone.items()))
            age = self._now - since
            if age <= self._stats.horizon and len(gone) <= most:
                break
            self._stats.ended(kind, age)
            del gone[key]
        now = self._now
        kinds = [_kind(node, node.hits) for node in self._watched]
        ages = [now - since for since in self._watched.values()]
        kinds += [kind for kind, _ in gone.values()]
        ages += [now - since for _, since in gone.values()]
        self._stats.learn(kinds, ages)


def _kind(node: Node, hits: int) -> int:
    """The class of a node with so many hits since it was inserted."""
    mark = node.mark
    uses = hits + (mark >> _USES)
    return 2 * (uses if uses < MOST_USES else MOST_USES) + (mark & _GONE_ON)
