"""What is kept on purpose: named caches, entries of markers and sessions, stored responses."""

from __future__ import annotations

from typing import Any

from hotprefix.api.dashboard.gate import Visitor
from hotprefix.api.dashboard.recent import RecentRequests
from hotprefix.api.named_caches import shown
from hotprefix.base.clock import Clock
from hotprefix.modes.entries import Entry, EntryBook
from hotprefix.modes.named import NamedCaches
from hotprefix.sessions.sessions import Sessions

_SHOWN = 200
_VERIFIED_FOR = 30.0
"""Seconds for which it is believed that a cache is still warm: asking costs the engine a little."""


class Holdings:
    """Used on the event loop only."""

    def __init__(
        self, named: NamedCaches, book: EntryBook, sessions: Sessions, recent: RecentRequests, clock: Clock
    ) -> None:
        self._named = named
        self._book = book
        self._sessions = sessions
        self._recent = recent
        self._clock = clock
        self._verified = float("-inf")

    async def show(self, visitor: Visitor, tenant: str | None) -> dict[str, Any]:
        """Of all tenants, or of one; a visitor who is a tenant sees its own alone."""
        chosen = tenant if visitor.sees_all else visitor.tenant
        await self._verify()
        caches = self._named.all() if chosen is None else self._named.of(chosen)
        now = self._clock.now()
        entries = [self._entry(entry, now) for entry in self._book if entry.expires > now]
        mine = [entry for entry in entries if chosen is None or entry["tenant"] == chosen]
        mine.sort(key=lambda entry: entry["expires_in"])
        responses, size = await self._sessions.count(chosen)
        return {
            "named": [{"tenant": cache.definition.tenant} | shown(cache) for cache in caches[:_SHOWN]],
            "named_count": len(caches),
            "entries": mine[:_SHOWN],
            "entries_count": len(mine),
            "entries_tokens": sum(entry["tokens"] for entry in mine),
            "responses": responses,
            "responses_bytes": size,
        }

    async def _verify(self) -> None:
        if self._clock.now() - self._verified < _VERIFIED_FOR:
            return
        self._verified = self._clock.now()
        for cache in self._named.all():
            await self._named.verify(cache)

    def _entry(self, entry: Entry, now: float) -> dict[str, Any]:
        owner = self._recent.scene_of(entry.tenant)
        return {
            "id": entry.key.hex()[:16],
            "tenant": entry.tenant if owner is None else owner.tenant,
            "scene": "" if owner is None else owner.scene,
            "tokens": entry.tokens,
            "ttl": entry.ttl,
            "expires_in": entry.expires - now,
            "is_held": bool(entry.pin),
        }
