"""`/admin/keys`: an administrator makes, lists, rotates and revokes keys over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import QueryParams
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from hotprefix.api.body import read_json
from hotprefix.api.errors import invalid_request
from hotprefix.api.identity import Doorman
from hotprefix.api.respond import send_json
from hotprefix.api.settings import ApiSettings
from hotprefix.base.clock import Clock
from hotprefix.base.errors import InvalidRequest, RequestError
from hotprefix.tenants.api_key import KeyWish, NewKey, RateLimits
from hotprefix.tenants.errors import TenantError, UnknownKey
from hotprefix.tenants.facts import key_facts
from hotprefix.tenants.key_store import KeyStore

_NO_STORE = [(b"cache-control", b"no-store")]
_LONGEST = 10 * 366 * 86_400
"""Seconds that a lifetime or an overlap may have: ten years."""
_T = TypeVar("_T")


class KeyNotFound(RequestError):
    """There is no key with this id."""

    status = 404
    code = "key_not_found"


class KeyBody(BaseModel):
    """What a new key shall be; `expires_in` in seconds from now."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tenant: str
    name: str = ""
    expires_in: float | None = Field(None, gt=0, le=_LONGEST, allow_inf_nan=False)
    admin: bool = False
    requests_per_minute: int | None = Field(None, gt=0, lt=2**53)
    tokens_per_minute: int | None = Field(None, gt=0, lt=2**53)
    concurrent: int | None = Field(None, gt=0, lt=2**53)


class RotateBody(BaseModel):
    """For how many seconds the old key goes on beside the new one."""

    model_config = ConfigDict(extra="forbid", strict=True)

    overlap: float = Field(0.0, ge=0, le=_LONGEST, allow_inf_nan=False)


class AdminKeys:
    """Handlers of one resource each; every one wants an administrator's key."""

    def __init__(
        self, keys: KeyStore, doorman: Doorman, workers: Executor, settings: ApiSettings, clock: Clock
    ) -> None:
        self._keys = keys
        self._doorman = doorman
        self._workers = workers
        self._settings = settings
        self._clock = clock

    def routes(self) -> list[BaseRoute]:
        """For the application's router."""
        return [
            Route("/admin/keys", _Endpoint(self.create), methods=["POST"]),
            Route("/admin/keys", _Endpoint(self.list), methods=["GET"]),
            Route("/admin/keys/{id}", _Endpoint(self.revoke), methods=["DELETE"]),
            Route("/admin/keys/{id}/rotate", _Endpoint(self.rotate), methods=["POST"]),
        ]

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /admin/keys`: 201 with the key, shown this once."""
        self._doorman.require_admin(scope)
        document = await read_json(scope, receive, self._settings)
        try:
            body = KeyBody.model_validate(document)
        except ValidationError as error:
            raise invalid_request(error) from None
        expires = None if body.expires_in is None else self._clock.wall() + body.expires_in

        def work() -> NewKey:
            limits = RateLimits(body.requests_per_minute, body.tokens_per_minute, body.concurrent)
            return self._keys.create(KeyWish(body.tenant, body.name, expires, body.admin, limits))

        await self._show_new(send, await self._in_worker(work))

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /admin/keys?tenant=…`: all keys, or one tenant's."""
        self._doorman.require_admin(scope)
        tenant = QueryParams(scope.get("query_string", b"")).get("tenant")
        found = await self._in_worker(lambda: self._keys.list(tenant))
        now = self._clock.wall()
        await send_json(
            send, 200, {"object": "list", "data": [key_facts(key, now) for key in found]}, _NO_STORE
        )

    async def revoke(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`DELETE /admin/keys/{id}`: the key opens nothing any more."""
        self._doorman.require_admin(scope)
        gone = await self._in_worker(lambda: self._keys.revoke(scope["path_params"]["id"]))
        await send_json(send, 200, key_facts(gone, self._clock.wall()), _NO_STORE)

    async def rotate(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /admin/keys/{id}/rotate` with `{"overlap": seconds}`: 201 with the new key."""
        self._doorman.require_admin(scope)
        document = await read_json(scope, receive, self._settings)
        try:
            body = RotateBody.model_validate(document)
        except ValidationError as error:
            raise invalid_request(error) from None
        made = await self._in_worker(lambda: self._keys.rotate(scope["path_params"]["id"], body.overlap))
        await self._show_new(send, made)

    async def _show_new(self, send: Send, made: NewKey) -> None:
        document = key_facts(made.key, self._clock.wall()) | {"key": made.text}
        await send_json(send, 201, document, _NO_STORE)

    async def _in_worker(self, work: Callable[[], _T]) -> _T:
        """The database may have to wait for a disk: not on the event loop."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._workers, work)
        except UnknownKey as error:
            raise KeyNotFound(str(error), param="id") from None
        except TenantError as error:
            if isinstance(error.__cause__, Exception):
                raise  # the database's fault, not the request's
            raise InvalidRequest(str(error)) from None


class _Endpoint:
    """Makes an ASGI app of a handler: the router would take a bare function for one of Starlette's."""

    def __init__(self, handler: Callable[[Scope, Receive, Send], Any]) -> None:
        self._handler = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._handler(scope, receive, send)
