"""Named caches: prefixes that are computed on request, pinned, and found by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from hotprefix.base.clock import Clock
from hotprefix.base.errors import HotprefixError, InvalidRequest
from hotprefix.modes.errors import CacheLimitReached, CacheNotFound
from hotprefix.modes.named_cache import Definition, NamedCache, NamedLimits
from hotprefix.modes.named_store import NamedStore
from hotprefix.modes.pinner import Pinner
from hotprefix.modes.state_file import BrokenCacheStore

Prefill = Callable[[str, Sequence[int]], Awaitable[int]]
"""Computes the keys and values of a tenant's tokens; returns how many of them were known already."""

Render = Callable[[Definition], Awaitable[Sequence[int]]]
"""The tokens of a definition's document, for the model that is served now."""

_GONE = "its memory went to a request that had no other room, or its beginning is public since, or no more"
_SAVED_SHARE = 0.25
"""A renewal is written down once it is worth this share of the TTL: not with every request."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A cache that was made or made again: tokens that were computed for it, and those that were known.

    `is_new` unless the cache of that name had just these tokens already.
    """

    cache: NamedCache
    computed: int
    known: int
    is_new: bool = True


class NamedCaches:
    """All named caches of a server. Used on the event loop only.

    `identity` names model, template and KV format: caches made for another one are stale until
    they are computed anew. A cache holds a pin in the arena while it is warm.
    """

    def __init__(
        self,
        store: NamedStore,
        pinner: Pinner,
        prefill: Prefill,
        clock: Clock,
        identity: str,
        limits: NamedLimits | None = None,
    ) -> None:
        self._store = store
        self._pinner = pinner
        self._prefill = prefill
        self._clock = clock
        self._identity = identity
        self._limits = limits or NamedLimits()
        known = [NamedCache(one, saved=one.expires or 0.0) for one in store.load()]
        self._caches = {(one.definition.tenant, one.definition.name): one for one in known}

    def __len__(self) -> int:
        return len(self._caches)

    def of(self, tenant: str) -> list[NamedCache]:
        """A tenant's caches, by name."""
        self.sweep()
        mine = [cache for (owner, _), cache in self._caches.items() if owner == tenant]
        return sorted(mine, key=lambda cache: cache.definition.name)

    def all(self) -> list[NamedCache]:
        """Every tenant's, by tenant and name."""
        self.sweep()
        return [self._caches[key] for key in sorted(self._caches)]

    def get(self, tenant: str, name: str) -> NamedCache:
        """Raises `CacheNotFound`, for another tenant's as well."""
        self.sweep()
        cache = self._caches.get((tenant, name))
        if cache is None:
            raise CacheNotFound(f"There is no cache '{name[:64]}'. GET /v1/caches lists them.", param="name")
        return cache

    async def put(
        self,
        tenant: str,
        name: str,
        document: dict[str, Any],
        token_ids: Sequence[int],
        ttl: float | None,
    ) -> Kept:
        """Compute a prefix and keep it, in place of the one of that name. `ttl` None never expires.

        Raises `CacheLimitReached` or `InvalidRequest`.
        """
        self._require_ttl(ttl)
        self._require_room(tenant, name, len(token_ids))
        known = await self._prefill(tenant, token_ids)
        pin = await self._pin(tenant, token_ids)
        try:
            self._require_room(tenant, name, len(token_ids))  # others may have come meanwhile
        except CacheLimitReached:
            self._pinner.unpin(pin)
            raise
        old = self._caches.get((tenant, name))
        now = self._clock.wall()
        definition = Definition(
            tenant=tenant,
            name=name,
            document=document,
            identity=self._identity,
            tokens=len(token_ids),
            created=old.definition.created if old else now,
            ttl=ttl,
            expires=None if ttl is None else now + ttl,
        )
        cache = NamedCache(definition, tuple(token_ids), pin, hits=old.hits if old else 0)
        self._caches[tenant, name] = cache
        if old is not None and old.pin:
            self._pinner.unpin(old.pin)
        self._save(cache)
        is_new = old is None or old.token_ids != cache.token_ids
        return Kept(cache, len(token_ids) - known, known, is_new)

    async def verify(self, cache: NamedCache) -> bool:
        """Whether it is warm. Requests that can run in no other way take the memory of pins."""
        if not cache.pin:
            return False
        definition = cache.definition
        held = await self._pinner.pin(cache.pin, definition.tenant, cache.token_ids)
        if not held and cache.pin:
            cache.pin, cache.note = "", _GONE
        elif self._caches.get((definition.tenant, definition.name)) is not cache:
            self._pinner.unpin(cache.pin)  # replaced or deleted meanwhile
        return bool(held)

    def renew(self, cache: NamedCache) -> None:
        """Start its lifetime anew."""
        self._change(cache, cache.definition.ttl)

    def set_ttl(self, cache: NamedCache, ttl: float | None) -> None:
        """Another lifetime from now on; None pins it for good."""
        self._require_ttl(ttl)
        self._change(cache, ttl)
        self._save(cache)

    def hit(self, cache: NamedCache) -> None:
        """A request used it: that starts its lifetime anew."""
        cache.hits += 1
        self.renew(cache)
        ttl, expires = cache.definition.ttl, cache.definition.expires
        if ttl is not None and expires is not None and expires - cache.saved >= _SAVED_SHARE * ttl:
            with suppress(BrokenCacheStore):  # tried again with the next hit; no error of this request
                self._save(cache)

    def delete(self, tenant: str, name: str) -> None:
        """Let it go. Raises `CacheNotFound`."""
        self._drop(self.get(tenant, name))

    def sweep(self) -> None:
        """Let go of what has expired."""
        now = self._clock.wall()
        for cache in list(self._caches.values()):
            expires = cache.definition.expires
            if expires is not None and expires <= now:
                with suppress(BrokenCacheStore):  # the next process will find it expired as well
                    self._drop(cache)

    def to_restore(self) -> list[NamedCache]:
        """Caches of an earlier process that are not warm yet."""
        self.sweep()
        return [cache for cache in self._caches.values() if not cache.pin]

    async def restore(self, cache: NamedCache, render: Render) -> bool:
        """Compute an earlier process's cache again; whether it is warm now. Its lifetime goes on.

        If the model has changed so that this is impossible, the cache stays, stale, and says why.
        """
        old = cache.definition
        try:
            token_ids = await render(old)
            await self._prefill(old.tenant, token_ids)
            pin = await self._pin(old.tenant, token_ids)
        except HotprefixError as error:
            cache.note = str(error)
            return False
        if self._caches.get((old.tenant, old.name)) is not cache:
            self._pinner.unpin(pin)  # replaced or deleted meanwhile
            return True
        if old.identity != self._identity:
            cache.note = "computed again: model, template or KV format have changed"
        else:
            cache.note = ""
        cache.token_ids, cache.pin = tuple(token_ids), pin
        cache.definition = replace(cache.definition, identity=self._identity, tokens=len(token_ids))
        self._save(cache)
        return True

    async def _pin(self, tenant: str, token_ids: Sequence[int]) -> str:
        pin = f"named-{uuid4().hex}"
        if not await self._pinner.pin(pin, tenant, token_ids):
            raise CacheLimitReached(
                "There is no room to keep this prefix: the memory for pinned prefixes is full, or the server "
                "runs without a cache. Delete a cache, shorten the prefix, or start with a larger --kv-arena."
            )
        return pin

    def _require_room(self, tenant: str, name: str, tokens: int) -> None:
        limits = self._limits
        others = [cache.definition for key, cache in self._caches.items() if key != (tenant, name)]
        mine = [definition for definition in others if definition.tenant == tenant]
        if len(mine) >= limits.per_tenant:
            raise CacheLimitReached(
                f"There are {len(mine)} caches, and {limits.per_tenant} may be. Delete one first."
            )
        if len(others) >= limits.caches:
            raise CacheLimitReached(
                f"This server may hold {limits.caches} named caches, those of all clients together, and it "
                "does. Delete one first, or have the operator raise --named-caches."
            )
        used = sum(definition.tokens for definition in mine)
        if used + tokens > limits.tokens_per_tenant:
            raise CacheLimitReached(
                f"The caches hold {used} tokens and this prefix has {tokens}; at most "
                f"{limits.tokens_per_tenant} may be held. Delete one, or shorten the prefix."
            )

    def _require_ttl(self, ttl: float | None) -> None:
        longest = self._limits.longest_ttl
        if ttl is not None and not 1 <= ttl <= longest:
            raise InvalidRequest(
                f"Invalid value for 'ttl': it is in seconds, from 1 to {longest:.0f}; or 'pin' the cache.",
                param="ttl",
            )

    def _save(self, cache: NamedCache) -> None:
        self._store.save(cache.definition)
        cache.saved = cache.definition.expires or 0.0

    def _change(self, cache: NamedCache, ttl: float | None) -> None:
        expires = None if ttl is None else self._clock.wall() + ttl
        cache.definition = replace(cache.definition, ttl=ttl, expires=expires)

    def _drop(self, cache: NamedCache) -> None:
        definition = cache.definition
        del self._caches[definition.tenant, definition.name]
        if cache.pin:
            self._pinner.unpin(cache.pin)
        self._store.delete(definition.tenant, definition.name)
