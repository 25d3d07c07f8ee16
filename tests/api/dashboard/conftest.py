"""Ledgers on both databases, as the ledger's own tests have them, and a server with a dashboard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from hotprefix.api.dashboard.recent import RecentRequests
from hotprefix.api.identity import Doorman
from hotprefix.api.settings import ApiSettings
from hotprefix.base.clock import SystemClock
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.store import open_store
from hotprefix.tenants.api_key import KeyWish
from hotprefix.tenants.authenticator import Authenticator
from hotprefix.tenants.limiter import RateLimiter
from hotprefix.tenants.tenancy import Tenancy, open_tenancy
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process
from tests.ledger.conftest import place, postgres_server, postgres_url, store

__all__ = ["place", "postgres_server", "postgres_url", "store"]

HERE = "http://127.0.0.1:8080"
RULES = "Answer in one short sentence, and never mention the weather. " * 8


def conversation(question: str, rules: str = RULES) -> list[dict[str, Any]]:
    return [{"role": "system", "content": rules}, {"role": "user", "content": question}]


@dataclass
class Site:
    """A server with a dashboard, and a browser's place to ask from."""

    server: Server
    recent: RecentRequests
    ledger: Ledger
    tenancy: Tenancy
    client: httpx.AsyncClient

    def key(self, tenant: str, *, admin: bool = False) -> dict[str, str]:
        made = self.tenancy.keys.create(KeyWish(tenant, is_admin=admin))
        return {"authorization": f"Bearer {made.text}"}

    async def chat(self, messages: list[dict[str, Any]], headers: dict[str, str] | None = None) -> None:
        body = {"model": "scripted", "messages": messages, "max_tokens": 3}
        response = await self.client.post("/v1/chat/completions", json=body, headers=headers)
        assert response.status_code == 200, response.text

    async def ask(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> Any:
        response = await self.client.get(f"/dashboard/api/{path}", params=query, headers=headers)
        assert response.status_code == 200, response.text
        assert response.headers["cache-control"] == "no-store"
        return response.json()

    async def status(self, path: str, headers: dict[str, str] | None = None, **query: Any) -> int:
        return (await self.client.get(f"/dashboard/api/{path}", params=query, headers=headers)).status_code


@asynccontextmanager
async def site(folder: Path, *, redact: bool = False) -> AsyncIterator[Site]:
    ledger, recent = Ledger(open_store(folder / "ledger.sqlite3")), RecentRequests(words=not redact)
    try:
        with open_tenancy(folder, SystemClock()) as tenancy:
            door = Authenticator(tenancy.keys, tenancy.quotas, tenancy.secret, require_keys=False)
            doorman = Doorman(door, RateLimiter(), SystemClock())
            engine, settings = ScriptedEngine(), ApiSettings(redact=redact)
            running = in_process(
                engine, settings, profile="hotprefix", ledger=ledger, recent=recent, doorman=doorman
            )
            async with running as server:
                transport = httpx.ASGITransport(app=server.app)
                async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
                    yield Site(server, recent, ledger, tenancy, client)
    finally:
        ledger.close()


@pytest.fixture
async def home(tmp_path: Path, anyio_backend: str) -> AsyncIterator[Site]:
    async with site(tmp_path) as home:
        yield home
