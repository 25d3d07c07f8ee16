"""`/admin/quotas` and `/admin/public`: what tenants may have, and what all of them may share."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from hotprefix.api.admin_desk import AdminDesk, show, show_list
from hotprefix.api.live_grants import LiveGrants
from hotprefix.kv.accounts import QuotaMode
from hotprefix.tenants.api_key import RateLimits
from hotprefix.tenants.facts import prefix_facts, quota_facts
from hotprefix.tenants.public_prefix import PublicPrefix, document_of
from hotprefix.tenants.quota import TenantQuota
from hotprefix.tenants.tenancy import Tenancy

Limit = Annotated[int | None, Field(gt=0, lt=2**53)]
Tokens = Annotated[int, Field(ge=0, lt=2**53)]


class QuotaBody(BaseModel):
    """A tenant's whole quota: what is left out is no limit."""

    model_config = ConfigDict(extra="forbid", strict=True)

    floor_tokens: Tokens = 0
    ceiling_tokens: Tokens | None = None
    at_ceiling: Literal["borrow", "replace", "reject"] = "borrow"
    requests_per_minute: Limit = None
    tokens_per_minute: Limit = None
    concurrent: Limit = None

    def quota(self, tenant: str) -> TenantQuota:
        """Raises `TenantError`."""
        limits = RateLimits(self.requests_per_minute, self.tokens_per_minute, self.concurrent)
        mode = QuotaMode(self.at_ceiling)
        return TenantQuota(tenant, self.floor_tokens, self.ceiling_tokens, mode, limits)


class PublicBody(BaseModel):
    """A prefix for all: messages, perhaps with tools, or the beginning of raw prompts."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(max_length=100)] = ""
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    text: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if (self.text is None) == (self.messages is None):
            raise PydanticCustomError("either", "give either 'messages' or 'text'", {"field": "messages"})
        if self.text is not None and self.tools:
            raise PydanticCustomError("no_tools", "a text has no tools", {"field": "text"})
        return self

    def document(self) -> dict[str, Any]:
        """What is stored. Raises `TenantError`."""
        if self.text is not None:
            return {"text": self.text}
        return document_of({"messages": self.messages, "tools": self.tools or []})


class AdminShares:
    """Every change is in force when its answer is sent."""

    def __init__(self, desk: AdminDesk, tenancy: Tenancy, grants: LiveGrants) -> None:
        self._desk = desk
        self._tenancy = tenancy
        self._grants = grants

    def routes(self) -> list[BaseRoute]:
        """For the application's router."""
        route = self._desk.route
        return [
            route("GET", "/admin/quotas", self.list_quotas),
            route("GET", "/admin/quotas/{tenant}", self.read_quota),
            route("PUT", "/admin/quotas/{tenant}", self.set_quota),
            route("DELETE", "/admin/quotas/{tenant}", self.delete_quota),
            route("GET", "/admin/public", self.list_public),
            route("POST", "/admin/public", self.add_public),
            route("DELETE", "/admin/public/{id}", self.delete_public),
        ]

    async def list_quotas(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /admin/quotas`: every quota that was set."""
        quotas = await self._desk.work(self._tenancy.quotas.list)
        await show_list(send, [self._facts(quota) for quota in quotas])

    async def read_quota(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /admin/quotas/{tenant}`: one without limits if none was set."""
        quota = await self._desk.work(lambda: self._tenancy.quotas.get(_tenant_of(scope)))
        await show(send, 200, self._facts(quota))

    async def set_quota(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`PUT /admin/quotas/{tenant}`: in the place of the one there was."""
        body = await self._desk.body(scope, receive, QuotaBody)
        await self._set(send, scope, body)

    async def delete_quota(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`DELETE /admin/quotas/{tenant}`: no limits any more; again changes nothing."""
        await self._set(send, scope, QuotaBody())

    async def list_public(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`GET /admin/public`: all public prefixes, oldest first."""
        prefixes = await self._desk.work(self._tenancy.public.list)
        await show_list(send, [prefix_facts(prefix) for prefix in prefixes])

    async def add_public(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`POST /admin/public`: 201, or 200 if it was public already; what can't be rendered is refused."""
        body = await self._desk.body(scope, receive, PublicBody)
        store = self._tenancy.public

        def work() -> tuple[bool, PublicPrefix, int]:
            document = body.document()
            tokens = self._grants.tokens(PublicPrefix.from_document("", "", 0.0, document))
            known = {prefix.id for prefix in store.list()}
            added = store.add(document, body.name)
            return added.id in known, added, len(tokens)

        known, added, tokens = await self._desk.work(work)
        await self._grants.refresh()
        shared = tokens - tokens % self._grants.block_size
        await show(send, 200 if known else 201, prefix_facts(added) | {"shared_tokens": shared})

    async def delete_public(self, scope: Scope, receive: Receive, send: Send) -> None:
        """`DELETE /admin/public/{id}`: private again."""
        gone = await self._desk.work(lambda: self._tenancy.public.remove(scope["path_params"]["id"]))
        await self._grants.refresh()
        await show(send, 200, prefix_facts(gone))

    async def _set(self, send: Send, scope: Scope, body: QuotaBody) -> None:
        def work() -> TenantQuota:
            quota = body.quota(_tenant_of(scope))
            self._tenancy.quotas.set(quota)
            return quota

        quota = await self._desk.work(work)
        await self._grants.refresh()
        await show(send, 200, self._facts(quota))

    def _facts(self, quota: TenantQuota) -> dict[str, Any]:
        return quota_facts(quota) | {"floor_is_whole": quota.tenant not in self._grants.short}


def _tenant_of(scope: Scope) -> str:
    tenant: str = scope["path_params"]["tenant"]
    return tenant
