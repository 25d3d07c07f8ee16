"""Stored responses: `GET` and `DELETE /v1/responses/{id}`, and `GET …/input_items`."""

from __future__ import annotations

from typing import Any

from starlette.datastructures import QueryParams
from starlette.types import Receive, Scope, Send

from hotprefix.api.generation import tenant_of
from hotprefix.api.respond import send_json
from hotprefix.api.service import Service
from hotprefix.base.errors import InvalidRequest
from hotprefix.sessions.errors import ResponseExpired, ResponseNotFound
from hotprefix.sessions.response import StoredResponse, Tombstone

_MOST = 100
_USUAL = 20


class ResponseEndpoint:
    """An ASGI app: one stored response, shown or deleted."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.inflight.answering():
            name, tenant = scope["path_params"]["response_id"], tenant_of(scope)
            if scope["method"] == "DELETE":
                if not await self._service.sessions.delete(tenant, name):
                    raise not_found(name)
                await send_json(send, 200, {"id": name, "object": "response", "deleted": True})
                return
            if QueryParams(scope["query_string"]).get("stream") == "true":
                raise InvalidRequest(
                    "Stored responses are complete and can't be streamed: leave 'stream' out.",
                    param="stream",
                )
            await send_json(send, 200, (await load(self._service, tenant, name)).document)


class InputItemsEndpoint:
    """An ASGI app: the input items of one turn, newest first unless asked otherwise."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.inflight.answering():
            query = QueryParams(scope["query_string"])
            limit, order = _limit(query), query.get("order", "desc")
            if order not in ("asc", "desc"):
                raise InvalidRequest("Invalid value for 'order': should be 'asc' or 'desc'.", param="order")
            stored = await load(self._service, tenant_of(scope), scope["path_params"]["response_id"])
            items = stored.input_items if order == "asc" else stored.input_items[::-1]
            await send_json(send, 200, _page(_after(items, query.get("after")), limit))


async def load(service: Service, tenant: str, name: str) -> StoredResponse:
    """Raises `ResponseNotFound`, for another tenant's as well, or `ResponseExpired`."""
    found = await service.sessions.load(tenant, name)
    if found is None:
        raise not_found(name)
    if isinstance(found, Tombstone):
        raise ResponseExpired(f"Response with id '{name[:100]}' has expired.", param="response_id")
    return found


def not_found(name: str) -> ResponseNotFound:
    return ResponseNotFound(f"Response with id '{name[:100]}' not found.", param="response_id")


def _limit(query: QueryParams) -> int:
    text = query.get("limit", str(_USUAL))
    if not (text.isascii() and text.isdecimal() and len(text) < 4 and 1 <= int(text) <= _MOST):
        raise InvalidRequest(f"Invalid value for 'limit': should be 1 to {_MOST}.", param="limit")
    return int(text)


def _after(items: list[dict[str, Any]], last: str | None) -> list[dict[str, Any]]:
    if last is None:
        return items
    places = [place for place, item in enumerate(items) if item["id"] == last]
    if not places:
        raise InvalidRequest("Invalid value for 'after': it is no item of this response.", param="after")
    return items[places[0] + 1 :]


def _page(items: list[dict[str, Any]], limit: int) -> dict[str, Any]:
    page = items[:limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(items) > limit,
    }
