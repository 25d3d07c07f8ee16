"""`/admin/keys`: an administrator makes, lists, rotates and revokes keys over HTTP."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from hotprefix.api.admin_desk import AdminDesk, query_of, show, show_list
from hotprefix.base.clock import Clock
from hotprefix.tenants.api_key import KeyWish, NewKey, RateLimits
from hotprefix.tenants.facts import key_facts
from hotprefix.tenants.key_store import KeyStore

_LONGEST = 10 * 366 * 86_400
"""Seconds that a lifetime or an overlap may have: ten years."""


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
    """Handlers of one resource each."""

    def __init__(self, desk: AdminDesk, keys: KeyStore, clock: Clock) -> None:
        self._desk = desk
        self._keys = keys
        self._clock = clock

    def routes(self) -> list[BaseRoute]:
        """For the application's router."""
        return [
            self._desk.route("POST", "/admin/keys", self.create),
            self._desk.route("GET", "/admin/keys", self.list),
            self._desk.route("DELETE", "/admin/keys/{id}", self.revoke),
            self._desk.route("POST", "/admin/keys/{id}/rotate", self.rotate),
        ]

    async def create(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /admin/keys`: 201 with the key, shown this once."""
        body = await self._desk.body(scope, receive, KeyBody)
        expires = None if body.expires_in is None else self._clock.wall() + body.expires_in

        def work() -> NewKey:
            limits = RateLimits(body.requests_per_minute, body.tokens_per_minute, body.concurrent)
            return self._keys.create(KeyWish(body.tenant, body.name, expires, body.admin, limits))

        await self._show_new(send, await self._desk.work(work))

    async def list(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /admin/keys?tenant=…`: all keys, or one tenant's."""
        tenant = query_of(scope, "tenant").get("tenant")
        found = await self._desk.work(lambda: self._keys.list(tenant))
        now = self._clock.wall()
        await show_list(send, [key_facts(key, now) for key in found])

    async def revoke(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`DELETE /admin/keys/{id}`: the key opens nothing any more."""
        gone = await self._desk.work(lambda: self._keys.revoke(scope["path_params"]["id"]))
        await show(send, 200, key_facts(gone, self._clock.wall()))

    async def rotate(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /admin/keys/{id}/rotate` with `{"overlap": seconds}`: 201 with the new key."""
        body = await self._desk.body(scope, receive, RotateBody)
        made = await self._desk.work(lambda: self._keys.rotate(scope["path_params"]["id"], body.overlap))
        await self._show_new(send, made)

    async def _show_new(self, send: Send, made: NewKey) -> None:
        await show(send, 201, key_facts(made.key, self._clock.wall()) | {"key": made.text})
