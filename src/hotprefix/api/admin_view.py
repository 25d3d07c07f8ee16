"""`/admin/caches` and `/admin/usage`: what all tenants have and use."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from hotprefix.api.admin_desk import AdminDesk, query_of, show, show_list
from hotprefix.api.named_caches import shown
from hotprefix.base.errors import InvalidRequest
from hotprefix.ledger.facts import usage_facts
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.query import Dimension, Span, totals, totals_by
from hotprefix.modes.named import NamedCaches


class AdminView:
    """Looks, and changes nothing."""

    def __init__(self, desk: AdminDesk, named: NamedCaches, ledger: Ledger | None) -> None:
        self._desk = desk
        self._named = named
        self._ledger = ledger

    def routes(self) -> list[BaseRoute]:
        """For the application's router; usage is there if there is a ledger."""
        routes: list[BaseRoute] = [self._desk.route("GET", "/admin/caches", self.caches)]
        if self._ledger is not None:
            routes.append(self._desk.route("GET", "/admin/usage", self.usage))
        return routes

    async def caches(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /admin/caches?tenant=…`: named caches with their tenants, without what they are made of."""
        tenant = query_of(scope, "tenant").get("tenant")
        found = self._named.all() if tenant is None else self._named.of(tenant)
        for cache in found:
            await self._named.verify(cache)
        await show_list(send, [{"tenant": cache.definition.tenant} | shown(cache) for cache in found])

    async def usage(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /admin/usage?by=…&since=…&until=…`: totals of the ledger."""
        query = query_of(scope, "by", "since", "until")
        by = _dimension(query.get("by", Dimension.TENANT.value))
        span = Span(_moment(query, "since"), _moment(query, "until"))
        # Adding up a large ledger takes seconds: not on the event loop, nor where prompts are tokenised.
        await show(send, 200, await asyncio.to_thread(self._totals, by, span))

    def _totals(self, by: Dimension, span: Span) -> dict[str, Any]:
        if self._ledger is None:
            return usage_facts(by, (), ())
        store = self._ledger.store
        return usage_facts(by, totals_by(store, by, span), totals(store, span))


def _dimension(name: str) -> Dimension:
    try:
        return Dimension(name)
    except ValueError:
        known = ", ".join(Dimension)
        raise InvalidRequest(
            f"Invalid value for 'by': '{name[:64]}'; write one of {known}.", param="by"
        ) from None


def _moment(query: dict[str, str], name: str) -> float | None:
    """Unix seconds of a date or time, which is in UTC unless it says otherwise."""
    text = query.get(name)
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidRequest(
            f"Invalid value for '{name}': write a date or a time like 2026-11-01 or 2026-11-01T08:00:00Z.",
            param=name,
        ) from None
    return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp()
