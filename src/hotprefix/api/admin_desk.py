"""What the parts of the admin API have in common: who may come in, and where the work is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import QueryParams
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from hotprefix.api.body import read_json
from hotprefix.api.errors import invalid_request
from hotprefix.api.identity import Doorman
from hotprefix.api.respond import send_json
from hotprefix.api.settings import ApiSettings
from hotprefix.base.errors import InvalidRequest, RequestError
from hotprefix.tenants.errors import TenantError, UnknownKey, UnknownPrefix

_NO_STORE = [(b"cache-control", b"no-store")]
_T = TypeVar("_T")
_Body = TypeVar("_Body", bound=BaseModel)
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]


class KeyNotFound(RequestError):
    """There is no key with this id."""

    status = 404
    code = "key_not_found"


class PrefixNotFound(RequestError):
    """There is no public prefix with this id."""

    status = 404
    code = "prefix_not_found"


class AdminPart(Protocol):
    """Some routes of the admin API."""

    def routes(self) -> list[BaseRoute]:
        """For the application's router."""
        ...


class AdminDesk:
    """Lets administrators in and nobody else; reads bodies, and keeps the event loop from waiting."""

    def __init__(self, doorman: Doorman, workers: Executor, settings: ApiSettings) -> None:
        self._doorman = doorman
        self._workers = workers
        self._settings = settings

    def route(self, method: str, path: str, handler: Handler) -> Route:
        """A route whose handler is reached with an administrator's key only."""
        return Route(path, _Endpoint(self._doorman, handler), methods=[method])

    async def body(self, scope: Scope, receive: Receive, model: type[_Body]) -> _Body:
        """The body, checked. Raises `InvalidRequest` that names the field at fault."""
        document = await read_json(scope, receive, self._settings)
        try:
            return model.model_validate(document)
        except ValidationError as error:
            raise invalid_request(error) from None

    async def work(self, work: Callable[[], _T]) -> _T:
        """Have a worker do it: the database may have to wait for a disk.

        What `TenantError` says of the request becomes a `RequestError`.
        """
        try:
            return await asyncio.get_running_loop().run_in_executor(self._workers, work)
        except UnknownKey as error:
            raise KeyNotFound(str(error), param="id") from None
        except UnknownPrefix as error:
            raise PrefixNotFound(str(error), param="id") from None
        except TenantError as error:
            if isinstance(error.__cause__, Exception):
                raise  # the database's fault, not the request's
            raise InvalidRequest(str(error)) from None


def query_of(scope: Scope, *allowed: str) -> dict[str, str]:
    """The query's parameters by name. Raises `InvalidRequest` for one that is not `allowed`."""
    parameters = dict(QueryParams(scope.get("query_string", b"")))
    for name in parameters:
        if name not in allowed:
            raise InvalidRequest(
                f"There is no parameter '{name[:64]}' here; there are: {', '.join(allowed)}.", param=name[:64]
            )
    return parameters


async def show(send: Send, status: int, document: dict[str, Any]) -> None:
    """An answer that nobody in between keeps."""
    await send_json(send, status, document, _NO_STORE)


async def show_list(send: Send, data: list[dict[str, Any]]) -> None:
    """A list in OpenAI's shape."""
    await show(send, 200, {"object": "list", "data": data})


class _Endpoint:
    """Makes an ASGI app of a handler: the router would take a bare function for one of Starlette's."""

    def __init__(self, doorman: Doorman, handler: Handler) -> None:
        self._doorman = doorman
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._doorman.require_admin(scope)
        await self._handler(scope, receive, send)
