"""Learns from the traffic what is worth keeping; where that is no better than LRU, it is LRU.

Blocks are classed by how often they were used (their uses before an eviction included) and by
whether a longer prompt ever went on behind them. For each class it learns at which ages its
blocks come back, and gives up the candidate whose keeping promises least per tick. Chat traffic
so gets recency, API traffic with a few hot prompts frequency, and a prompt's last, ragged block goes early.

LRU is followed until a rehearsal of what was learned, on a sample of the keys, has found more than
LRU did, and again for a while when it falls behind (`Trial`).
"""

from __future__ import annotations

from collections import OrderedDict

from hotprefix.base.ids import BlockKey
from hotprefix.kv.node import Node
from hotprefix.kv.policy.base import CandidateHeap
from hotprefix.kv.policy.marks import CLASSES, GONE_ON, WATCHED, after_return, at_eviction, class_of
from hotprefix.kv.policy.reuse_stats import ReuseStats
from hotprefix.kv.policy.trial import Trial

REMEMBERED = 4
"""Evicted blocks whose uses are remembered, in capacities."""
SAMPLES = 4096
"""About as many blocks are watched at most: of larger caches every second, fourth, …, by their keys."""
LEARN_EVERY = 0.5
RANK_EVERY = 0.25
"""Both in capacities of ticks."""
LEAST_LEARNED = 200
"""Ticks that learning waits for at least: a small cache would forget as fast as it learns."""


class AdaptivePolicy:
    """The leaf that promises least goes first.

    All verbs cost O(log candidates), amortised; memory is O(capacity).
    """

    name = "adaptive"

    def __init__(self, capacity: int) -> None:
        self._capacity = max(1, capacity)
        self._stride = 1 << max(0, round(self._capacity / SAMPLES).bit_length() - 1)
        # Keys that have any of these bits are not watched.
        self._unsampled = self._stride - 1
        self._stats = ReuseStats(self._capacity, CLASSES)
        self._value_of = self._stats.value_of
        sample = self._capacity // self._stride
        self._trial = Trial(sample, self._capacity, self._learned_rank, REMEMBERED * sample)
        self._candidates = CandidateHeap(self._rank)
        self._remembered: OrderedDict[BlockKey, int] = OrderedDict()
        # Watched blocks with the tick of their last use: here, and evicted ones, oldest first.
        self._watched: dict[Node, int] = {}
        self._gone: OrderedDict[BlockKey, tuple[int, int]] = OrderedDict()
        # The block that was given up last: what goes otherwise goes for no lack of room.
        self._victim: Node | None = None
        self._now = 0
        self._learn_at = self._rank_at = self._capacity

    @property
    def is_trusted(self) -> bool:
        """Whether what was learned is followed, not LRU."""
        return self._trial.is_trusted

    def __len__(self) -> int:
        return len(self._candidates)

    def inserted(self, node: Node) -> None:
        tick, key, parent = node.touched, node.key, node.parent
        # Blocks that come from another policy may be old. (A call of `max` takes longer.)
        if tick > self._now:  # noqa: PLR1730
            self._now = tick
        if parent is not None:
            parent.mark |= GONE_ON
            if parent.is_root:
                self._trial.settle()
        uses = self._remembered.pop(key, None)
        node.mark = GONE_ON if node.children else 0
        if uses is not None:
            node.mark |= after_return(uses)
        if self._unsampled and (key[0] | key[1] << 8) & self._unsampled:
            return
        if uses is not None:
            known = self._gone.pop(key, None)
            if known is not None:
                kind, since = known
                self._stats.reused(kind, tick - since)
        node.mark |= WATCHED
        self._watched[node] = tick
        self._trial.note(node)

    def touched(self, node: Node) -> None:
        tick = node.touched
        if tick != self._now:
            self._now = tick
            self._trial.settle()
        if node.mark & WATCHED:
            self._stats.reused(class_of(node, node.hits - 1), tick - self._watched[node])
            self._watched[node] = tick
            self._trial.note(node)
        if node in self._candidates.members:
            self._candidates.add(node)

    def removed(self, node: Node) -> None:
        if node.mark & WATCHED:
            since = self._watched.pop(node)
            if node is self._victim:
                self._gone[node.key] = (class_of(node, node.hits), since)
            else:
                self._trial.forget(node.key)
        remembered = self._remembered
        remembered[node.key] = at_eviction(node)
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
            was_trusted = self._trial.is_trusted
            self._trial.judge(now)
            self._rank_at = now + max(1, int(RANK_EVERY * self._capacity))
            # By LRU's ranking they stand as they are: nothing in it changes with time.
            if was_trusted or self._trial.is_trusted:
                self._candidates.rerank()
            self._trial.rerank()
        self._victim = victim = self._candidates.pop()
        return victim

    def _rank(self, node: Node) -> tuple[float, int]:
        if self._trial.is_trusted:
            return self._learned_rank(node)
        return 0.0, node.touched

    def _learned_rank(self, node: Node) -> tuple[float, int]:
        touched = node.touched
        return self._value_of(class_of(node, node.hits), self._now - touched), touched

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
        kinds = [class_of(node, node.hits) for node in self._watched]
        ages = [now - since for since in self._watched.values()]
        kinds += [kind for kind, _ in gone.values()]
        ages += [now - since for _, since in gone.values()]
        self._stats.learn(kinds, ages)
