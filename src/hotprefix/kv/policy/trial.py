"""Whether a learned ranking is worth following: it has to beat LRU on paper first, then in the cache.

Three counts of found blocks over the same sample of keys: of the cache itself, of a shadow of LRU, and
of a rehearsal of the ranking. While LRU is followed the rehearsal is held against LRU; while the ranking
is followed the cache is. So a ranking that is no better than LRU costs nothing, and one that was better
once and is no more costs a bounded number of hits.
"""

from __future__ import annotations

from collections.abc import Callable

from hotprefix.base.ids import BlockKey
from hotprefix.kv.node import Node
from hotprefix.kv.policy.lru_shadow import LruShadow
from hotprefix.kv.policy.marks import WATCHED
from hotprefix.kv.policy.rehearsal import Rehearsal

LEAD = 0.05
"""Hits, in capacities, that the rehearsal has to be ahead of LRU to be followed …"""
SURE = 2.0
"""… and standard deviations: requests that one of both served better count as throws of a coin."""
FADE = 0.98
"""What older requests weigh at each further judgement."""
MOST_BEHIND = 0.1
"""Hits, in capacities, that the cache may fall behind LRU before LRU is followed again."""
FORGOTTEN = 0.1
"""A lead of the cache beyond so many capacities of hits is forgotten: it is not lost again."""
FEWEST = 8
"""Hits that both of these are at least: in a cache of a few blocks a tenth is nothing."""
FIRST_REST = 4
LAST_REST = 256
"""For how many capacities of ticks a ranking that fell behind is not followed; twice as long each time."""


class Trial:
    """Judges a ranking of `capacity` watched keys; ticks are the tree's, `ticks` of them fill the cache."""

    def __init__(
        self, capacity: int, ticks: int, rank: Callable[[Node], tuple[float, ...]], remembered: int
    ) -> None:
        self._ticks = ticks
        self._lru = LruShadow(capacity)
        self._rehearsal = Rehearsal(capacity, rank, remembered)
        self._lead = LEAD * capacity
        self._behind = max(FEWEST, int(MOST_BEHIND * capacity))
        self._forgotten = max(FEWEST, int(FORGOTTEN * capacity))
        self._found = 0
        # What the cache was ahead of LRU when the ranking was taken up; what the rehearsal is ahead now.
        self._base = self._ahead = 0
        # Hits that the rehearsal was ahead lately, and the sum of the squares of each request's.
        self._promised = self._spread = 0.0
        self._rest = FIRST_REST
        self._rests_until = 0
        self.is_trusted = False
        """Whether the ranking is followed, not LRU."""

    def note(self, node: Node) -> None:
        """A block was wanted, of which `Node.hits` tells whether it was there."""
        self._found += node.hits > 0
        self._lru.note(node.key)
        self._rehearsal.note(node, _watched_above(node))

    def forget(self, key: BlockKey) -> None:
        """A block has gone for no lack of room: no cache would have it."""
        self._lru.forget(key)
        self._rehearsal.forget(key)

    def settle(self) -> None:
        """A request is over."""
        self._lru.settle()
        self._rehearsal.settle()
        ahead = self._rehearsal.found - self._lru.found
        if ahead != self._ahead:
            won, self._ahead = ahead - self._ahead, ahead
            self._promised += won
            self._spread += won * won

    def rerank(self) -> None:
        """The ranking has changed."""
        self._rehearsal.rerank()

    def judge(self, now: int) -> None:
        """Change what is followed, if it is time to."""
        self.settle()
        if self.is_trusted:
            self._judge_cache(now)
        else:
            self._judge_rehearsal(now)

    def _judge_cache(self, now: int) -> None:
        lead = self._found - self._lru.found - self._base
        if lead < -self._behind:
            self.is_trusted = False
            self._rests_until = now + self._rest * self._ticks
            self._rest = min(LAST_REST, 2 * self._rest)
        elif lead > self._forgotten:
            self._base += lead - self._forgotten

    def _judge_rehearsal(self, now: int) -> None:
        if now < self._rests_until:
            self._promised, self._spread = 0.0, 0.0
        elif self._promised > max(self._lead, SURE * self._spread**0.5):
            self.is_trusted = True
            self._base = self._found - self._lru.found
        self._promised *= FADE
        self._spread *= FADE * FADE


def _watched_above(node: Node) -> BlockKey | None:
    above = node.parent
    while above is not None and not above.mark & WATCHED:
        above = above.parent
    return None if above is None else above.key
