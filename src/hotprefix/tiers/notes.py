"""What the tiers remember of blocks besides their bytes: hits, where they begin, who wants them kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from threading import Lock
from typing import TypeVar

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.tiers.facts import BlockFacts, Reason

MOST_NOTES = 1 << 16
_T = TypeVar("_T")


class BlockNotes:
    """Facts by key, of at most `most` blocks: those noted longest ago are forgotten. Thread-safe."""

    def __init__(self, clock: Clock, most: int = MOST_NOTES) -> None:
        self._clock = clock
        self._most = most
        self._lock = Lock()
        self._facts: OrderedDict[BlockKey, BlockFacts] = OrderedDict()
        self._until: OrderedDict[BlockKey, float] = OrderedDict()

    def note(self, key: BlockKey, facts: BlockFacts) -> None:
        """Facts from the arena; hits that were counted below are kept."""
        with self._lock:
            known = self._facts.get(key)
            if known is not None and known.hits > facts.hits:
                facts = replace(facts, hits=known.hits)
            self._set(self._facts, key, facts)

    def hit(self, key: BlockKey, position: int, tokens: int) -> None:
        """It was found in a tier."""
        with self._lock:
            known = self._facts.get(key) or BlockFacts(position=position, tokens=tokens)
            self._set(self._facts, key, replace(known, hits=known.hits + 1))

    def retain(self, keys: Sequence[BlockKey], until: float) -> None:
        """They are wanted until then (wall clock)."""
        with self._lock:
            for key in keys:
                self._set(self._until, key, until)

    def until(self, key: BlockKey) -> float | None:
        """Until when it is wanted; None if it is not, or no longer."""
        with self._lock:
            return self._wanted(key)

    def facts(self, key: BlockKey, reason: Reason) -> BlockFacts:
        """All that is known of it."""
        with self._lock:
            known = self._facts.get(key, BlockFacts())
            return replace(known, reason=reason, pinned=known.pinned or self._wanted(key) is not None)

    def _wanted(self, key: BlockKey) -> float | None:
        until = self._until.get(key)
        return until if until is not None and until > self._clock.wall() else None

    def _set(self, table: OrderedDict[BlockKey, _T], key: BlockKey, value: _T) -> None:
        table[key] = value
        table.move_to_end(key)
        if len(table) > self._most:
            table.popitem(last=False)
