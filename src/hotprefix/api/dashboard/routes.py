"""`/dashboard`: what the cache does, for people. Everything is a GET; nothing here changes anything."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from hotprefix import __version__
from hotprefix.api.admin_desk import query_of
from hotprefix.api.dashboard.comparison import comparison
from hotprefix.api.dashboard.engine_state import engine_state
from hotprefix.api.dashboard.errors import RequestNotFound
from hotprefix.api.dashboard.figures import by_scene, summary
from hotprefix.api.dashboard.gate import Gate, Visitor
from hotprefix.api.dashboard.holdings import Holdings
from hotprefix.api.dashboard.prefixes import PrefixView
from hotprefix.api.dashboard.recent import RecentRequests
from hotprefix.api.dashboard.rows import columns_of, found, page_of, whole
from hotprefix.api.dashboard.selection import FIELDS, selection_of
from hotprefix.api.dashboard.static_files import StaticFiles
from hotprefix.api.dashboard.stream import LiveStream
from hotprefix.api.respond import send_bytes, send_json
from hotprefix.api.service import Service
from hotprefix.base.errors import Forbidden, InvalidRequest, Unauthenticated, Unavailable
from hotprefix.ledger.errors import LedgerError
from hotprefix.ledger.store import LedgerStore

ROOT = "/dashboard"
_HEADERS = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
_AT_ONCE = 2
"""Questions to the ledger at the same time: adding up a large one takes seconds."""
_T = TypeVar("_T")
Answer = Callable[[Visitor, Mapping[str, str], Scope], Awaitable[dict[str, Any]]]


class Dashboard:
    """The page's questions, each answered for the visitor who asks."""

    def __init__(self, service: Service, recent: RecentRequests, store: LedgerStore) -> None:
        self._service = service
        self._recent = recent
        self._store = store
        self._gate = Gate(service.doorman)
        self._prefixes = PrefixView(service.engine, recent, service.workers, service.clock)
        self._holdings = Holdings(
            service.named, service.caching.book, service.sessions, recent, service.clock
        )
        self._places = asyncio.Semaphore(_AT_ONCE)

    def routes(self) -> list[BaseRoute]:
        """The page, its files, its data and its live stream."""
        files, stream = StaticFiles(), LiveStream(self._gate, self._recent, self._service.inflight)
        data = (
            ("summary", self._summary, FIELDS),
            ("requests", self._requests, (*FIELDS, "before", "before_id")),
            ("requests/{id}", self._request, ("redact",)),
            ("scenes", self._scenes, FIELDS),
            ("prefixes", self._top, ("tenant", "redact")),
            ("caches", self._caches, ("tenant",)),
            ("engine", self._engine, ()),
        )
        return [
            Route(ROOT, files, methods=["GET"]),
            Route(f"{ROOT}/", _Redirect(), methods=["GET"]),
            Route(f"{ROOT}/static/{{name}}", files, methods=["GET"]),
            Route(f"{ROOT}/api/hello", _Hello(self._hello), methods=["GET"]),
            Route(f"{ROOT}/api/stream", stream, methods=["GET"]),
            *(
                Route(f"{ROOT}/api/{path}", _Endpoint(self._gate, answer, fields), methods=["GET"])
                for path, answer, fields in data
            ),
        ]

    def _hello(self, scope: Scope) -> dict[str, Any]:
        """Who the page is talking to; that a key is needed is no error."""
        try:
            visitor = self._gate.visitor(scope)
        except Unauthenticated as error:
            return {"state": "key", "message": str(error)}
        except Forbidden as error:
            return {"state": "closed", "message": str(error)}
        model, service = self._service.engine.model, self._service
        return {
            "state": "open",
            "has_key": not self._gate.is_open,
            "tenant": visitor.tenant,
            "version": __version__,
            "model": model.name,
            "profile": service.profile.name,
            "context": model.context_length,
            "is_redacted": service.settings.redact,
            "now": service.clock.wall(),
        }

    async def _summary(self, visitor: Visitor, query: Mapping[str, str], _: Scope) -> dict[str, Any]:
        now = self._service.clock.wall()
        chosen = selection_of(query, visitor, now)
        return await self._ask(lambda: summary(self._store, self._service.profiles, chosen, now))

    async def _requests(self, visitor: Visitor, query: Mapping[str, str], _: Scope) -> dict[str, Any]:
        chosen = selection_of(query, visitor, self._service.clock.wall())
        before = _before(query)
        return {"requests": await self._ask(lambda: page_of(self._store, chosen, before))}

    async def _request(self, visitor: Visitor, query: Mapping[str, str], scope: Scope) -> dict[str, Any]:
        request_id: str = scope["path_params"]["id"]
        row = self._recent.row(request_id)
        facts = whole(columns_of(row)) if row is not None else None
        facts = facts or await self._ask(lambda: found(self._store, request_id))
        if facts is None or (not visitor.sees_all and facts["tenant"] != visitor.tenant):
            raise RequestNotFound(f"There is no request {request_id[:100]} in the ledger.", param="id")
        words = not (self._service.settings.redact or query.get("redact"))
        if not words:
            facts["divergence"] = _without_words(facts["divergence"])
        pair = self._recent.pair(request_id)
        # A page of text is compared word by word: not on the event loop.
        compared = None if pair is None else await asyncio.to_thread(comparison, pair, words=words)
        return facts | {"comparison": compared}

    async def _scenes(self, visitor: Visitor, query: Mapping[str, str], _: Scope) -> dict[str, Any]:
        chosen = selection_of(query, visitor, self._service.clock.wall())
        return await self._ask(lambda: by_scene(self._store, chosen))

    async def _top(self, visitor: Visitor, query: Mapping[str, str], _: Scope) -> dict[str, Any]:
        words = not (self._service.settings.redact or query.get("redact"))
        return await self._prefixes.show(visitor, query.get("tenant"), words=words)

    async def _caches(self, visitor: Visitor, query: Mapping[str, str], _: Scope) -> dict[str, Any]:
        return await self._holdings.show(visitor, query.get("tenant"))

    async def _engine(self, visitor: Visitor, _: Mapping[str, str], __: Scope) -> dict[str, Any]:
        if not visitor.sees_all:
            raise Forbidden("The server's own figures are for administrators.")
        return engine_state(self._service.registry)

    async def _ask(self, question: Callable[[], _T]) -> _T:
        async with self._places:
            try:
                return await asyncio.to_thread(question)
            except LedgerError as error:
                raise Unavailable(f"The ledger can't be read: {error}", retry_after=5) from error


class _Endpoint:
    """Lets a visitor in and checks the query."""

    def __init__(self, gate: Gate, answer: Answer, fields: tuple[str, ...]) -> None:
        self._gate = gate
        self._answer = answer
        self._fields = fields

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = self._gate.visitor(scope)
        document = await self._answer(visitor, query_of(scope, *self._fields), scope)
        await send_json(send, 200, document, _HEADERS)


class _Hello:
    """Answers everybody."""

    def __init__(self, answer: Callable[[Scope], dict[str, Any]]) -> None:
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_json(send, 200, self._answer(scope), _HEADERS)


class _Redirect:
    """To the page itself; relative, so that it works below a proxy's prefix."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_bytes(send, 307, b"", [(b"location", b"../dashboard")])


def dashboard_routes(service: Service) -> list[BaseRoute]:
    """None without a ledger, whose figures they show, or where the dashboard is switched off."""
    if service.recent is None or service.ledger is None:
        return []
    return Dashboard(service, service.recent, service.ledger.store).routes()


def _before(query: Mapping[str, str]) -> tuple[float, str] | None:
    text = query.get("before")
    if text is None:
        return None
    try:
        return float(text), query.get("before_id", "")
    except ValueError:
        raise InvalidRequest("Invalid value for 'before': write Unix seconds.", param="before") from None


def _without_words(divergence: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if divergence is None else divergence | {"before": "", "after": ""}
