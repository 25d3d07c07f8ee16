"""`/v1/caches`: prefixes kept by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from hotprefix.api.admittance import admission_of
from hotprefix.api.body import read_json, read_optional_json
from hotprefix.api.generation import ignored_header, tenant_of
from hotprefix.api.named_booking import NamedBooking
from hotprefix.api.named_document import (
    DEFAULT_TTL,
    Renderer,
    content_of,
    parse_cache,
    parse_lifetime,
)
from hotprefix.api.respond import send_json
from hotprefix.api.service import Service
from hotprefix.base.errors import InvalidRequest
from hotprefix.modes.named import Kept
from hotprefix.modes.named_cache import NamedCache

Verb = Callable[[Scope, Receive, Send], Awaitable[None]]


class NamedCachesApi:
    """A tenant sees, makes and deletes its own caches, and never another's."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._named = service.named
        self._renderer = Renderer(service)
        self._booking = NamedBooking(service)

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Make a cache, or make it anew; 201 if there was none of that name."""
        document = await read_json(scope, receive, self._service.settings)
        request, tenant = parse_cache(document), tenant_of(scope)
        known = {cache.definition.name for cache in self._named.of(tenant)}
        turn = await self._renderer.turn(request, tenant)
        admission = admission_of(scope)
        if admission is not None:
            admission.charge(len(turn.prompt.token_ids))
        kept = await self._named.put(
            tenant, request.name, content_of(document), turn.prompt.token_ids, request.chosen(DEFAULT_TTL)
        )
        status = 200 if request.name in known else 201
        if kept.is_new:
            await self._booking.book(scope, turn, kept, status)
        await send_json(send, status, shown_kept(kept), ignored_header(list(request.model_extra or {})))

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        """All of the tenant's."""
        caches = self._named.of(tenant_of(scope))
        for cache in caches:
            await self._named.verify(cache)
        data = [shown(cache) for cache in caches]
        await send_json(send, 200, {"object": "list", "data": data})

    async def read(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One, with what it is made of."""
        cache = self._one(scope)
        await self._named.verify(cache)
        await send_json(send, 200, shown(cache) | {"content": cache.definition.document})

    async def refresh(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Start the lifetime anew, or change it; a stale cache is computed again."""
        body = await read_optional_json(scope, receive, self._service.settings)
        wanted, cache = parse_lifetime(body), self._one(scope)
        ttl = wanted.chosen(cache.definition.ttl)
        if not await self._named.verify(cache) and not await self._named.restore(cache, self._renderer):
            raise InvalidRequest(f"This cache can't be computed again: {cache.note}", param="name")
        self._named.set_ttl(cache, ttl)
        await send_json(send, 200, shown(cache))

    async def delete(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let it go."""
        name = scope["path_params"]["name"]
        self._named.delete(tenant_of(scope), name)
        await send_json(send, 200, {"object": "cache", "name": name, "deleted": True})

    def _one(self, scope: Scope) -> NamedCache:
        return self._named.get(tenant_of(scope), scope["path_params"]["name"])


class _Endpoint:
    """An ASGI app around one verb, so that shutting down waits for it."""

    def __init__(self, service: Service, verb: Verb) -> None:
        self._service = service
        self._verb = verb

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.inflight.answering():
            await self._verb(scope, receive, send)


def named_cache_routes(service: Service) -> list[BaseRoute]:
    """Everything below `/v1/caches`."""
    api = NamedCachesApi(service)

    def endpoint(verb: Verb) -> ASGIApp:
        return _Endpoint(service, verb)

    return [
        Route("/v1/caches", endpoint(api.create), methods=["POST"]),
        Route("/v1/caches", endpoint(api.list), methods=["GET"]),
        Route("/v1/caches/{name}/refresh", endpoint(api.refresh), methods=["POST"]),
        Route("/v1/caches/{name}", endpoint(api.read), methods=["GET"]),
        Route("/v1/caches/{name}", endpoint(api.delete), methods=["DELETE"]),
    ]


def shown(cache: NamedCache) -> dict[str, Any]:
    """A cache as clients see it; times in Unix seconds."""
    definition = cache.definition
    return {
        "object": "cache",
        "name": definition.name,
        "state": cache.state.value,
        "tokens": definition.tokens,
        "created": int(definition.created),
        "ttl": definition.ttl,
        "expires_at": None if definition.expires is None else int(definition.expires),
        "pinned": definition.ttl is None,
        "hits": cache.hits,
        "note": cache.note or None,
    }


def shown_kept(kept: Kept) -> dict[str, Any]:
    """The same, with what it took to make it."""
    return shown(kept.cache) | {"computed_tokens": kept.computed, "reused_tokens": kept.known}
