"""Cache entries: prefixes that were written on purpose, and until when they can be read."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Protocol

from hotprefix.base.ids import BlockKey


@dataclass(slots=True)
class Entry:
    """One written prefix. `key` chains its tokens from the tenant's root, so it names tenant, model
    and content at once. Times are on the injected clock, in seconds."""

    key: BlockKey
    tenant: str
    tokens: int
    ttl: float
    expires: float
    pin: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is remembered of an entry that is gone: when it could last be read, and why it went."""

    expired: float
    cause: str


class EntryJournal(Protocol):
    """Where entries are written down, to outlive the process."""

    def keep(self, entry: Entry) -> None:
        """An entry is new, or lives longer now."""
        ...

    def forget(self, key: BlockKey) -> None:
        """An entry is gone."""
        ...


class NoJournal:
    """Entries end with the process."""

    def keep(self, entry: Entry) -> None:
        pass

    def forget(self, key: BlockKey) -> None:
        pass


class EntryBook:
    """All entries of a server, at most `limit`; the ones that expire first make room.

    The time is an argument, and what was dropped is returned, for the caller to unpin.
    """

    def __init__(self, limit: int, journal: EntryJournal | None = None) -> None:
        self._limit = limit
        self._journal: EntryJournal = NoJournal() if journal is None else journal
        self._entries: dict[BlockKey, Entry] = {}
        self._gone: OrderedDict[BlockKey, Tombstone] = OrderedDict()
        self._earliest = inf
        """No entry expires before then: hits only put it off."""

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(list(self._entries.values()))

    def find(self, key: BlockKey, now: float) -> Entry | None:
        """The entry of `key`, if it can be read at `now`. Does not renew it."""
        entry = self._entries.get(key)
        return entry if entry is not None and entry.expires > now else None

    def gone(self, key: BlockKey, now: float) -> Tombstone | None:
        """What became of the entry of `key`, if there was one and it can't be read any more."""
        entry = self._entries.get(key)
        if entry is not None:
            return Tombstone(entry.expires, "expired") if entry.expires <= now else None
        return self._gone.get(key)

    def renew(self, entry: Entry, now: float) -> None:
        """A hit starts the lifetime anew."""
        entry.expires = max(entry.expires, now + entry.ttl)
        self._journal.keep(entry)

    def add(self, entry: Entry) -> list[Entry]:
        """Keep an entry; one with the same key lives on for as long as the longer-lived of both."""
        old = self._entries.get(entry.key)
        if old is not None:
            old.expires = max(old.expires, entry.expires)
            old.ttl = max(old.ttl, entry.ttl)
            old.name = entry.name or old.name
            self._journal.keep(old)
            return []
        self._gone.pop(entry.key, None)
        self._entries[entry.key] = entry
        self._earliest = min(self._earliest, entry.expires)
        self._journal.keep(entry)
        if len(self._entries) <= self._limit:
            return []
        first = min(self._entries.values(), key=lambda other: other.expires)
        return [self.drop(first, "evicted")]

    def drop(self, entry: Entry, cause: str) -> Entry:
        """Take an entry out."""
        del self._entries[entry.key]
        self._journal.forget(entry.key)
        self.bury(entry, cause)
        return entry

    def bury(self, entry: Entry, cause: str) -> None:
        """Remember that there was an entry."""
        self._gone[entry.key] = Tombstone(entry.expires, cause)
        if len(self._gone) > self._limit:
            self._gone.popitem(last=False)

    def sweep(self, now: float) -> list[Entry]:
        """Take out what has expired. Costs nothing while nothing can have: every request asks."""
        if now < self._earliest:
            return []
        gone = [self.drop(entry, "expired") for entry in self if entry.expires <= now]
        self._earliest = min((entry.expires for entry in self._entries.values()), default=inf)
        return gone
