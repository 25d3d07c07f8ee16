"""Quotas, public prefixes and the view over all tenants: over HTTP, and changed by other processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.routing import Router

from hotprefix.api.admin_desk import AdminDesk
from hotprefix.api.admin_shares import AdminShares
from hotprefix.api.admin_view import AdminView
from hotprefix.api.boundary import Boundary
from hotprefix.api.identity import Doorman
from hotprefix.api.live_grants import LiveGrants
from hotprefix.api.settings import ApiSettings
from hotprefix.base.clock import SystemClock
from hotprefix.kv.accounts import QuotaMode
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.store import open_store
from hotprefix.tenants.api_key import KeyWish, RateLimits
from hotprefix.tenants.authenticator import Authenticator
from hotprefix.tenants.database import Database
from hotprefix.tenants.errors import TenantError
from hotprefix.tenants.limiter import RateLimiter
from hotprefix.tenants.public_prefix import read_prefix
from hotprefix.tenants.quota import TenantQuota
from hotprefix.tenants.tenancy import Tenancy, open_tenancy
from tests.api.support import Server
from tests.ledger.rows import row

pytestmark = pytest.mark.anyio

RULES = "You sell shoes, and nothing else but shoes, in every size there is."
SYSTEM = [{"role": "system", "content": RULES}]


@dataclass
class House:
    folder: Path
    tenancy: Tenancy
    grants: LiveGrants
    ledger: Ledger
    server: Server
    client: httpx.AsyncClient

    async def ask(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        response = await self.client.request(method, path, json=body)
        assert response.status_code == status, response.text
        return response.json()

    def shared(self, messages: list[dict[str, Any]]) -> int:
        """Blocks of a conversation that the engine reads with everybody."""
        zone = self.server.engine.zone
        prompts = self.server.service.prompts
        return 0 if zone is None else zone.shared_blocks(prompts.chat(messages, [], {}, ""))


@asynccontextmanager
async def house(folder: Path, server: Server) -> AsyncIterator[House]:
    ledger = Ledger(open_store(folder / "ledger.sqlite3"))
    with open_tenancy(folder, SystemClock()) as tenancy, ThreadPoolExecutor(1) as workers:
        door = Authenticator(tenancy.keys, tenancy.quotas, tenancy.secret, require_keys=False)
        desk = AdminDesk(Doorman(door, RateLimiter(), SystemClock()), workers, ApiSettings())
        service = server.service
        grants = LiveGrants(tenancy, server.engine, service.prompts, workers, service.log, seconds=0.01)
        parts = (AdminShares(desk, tenancy, grants), AdminView(desk, service.named, ledger))
        router = Router([route for part in parts for route in part.routes()], redirect_slashes=False)
        key = tenancy.keys.create(KeyWish("ops", is_admin=True)).text
        transport = httpx.ASGITransport(app=Boundary(router, service))
        headers = {"authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(transport=transport, base_url="http://t", headers=headers) as client:
            yield House(folder, tenancy, grants, ledger, server, client)
    ledger.close()


@pytest.fixture
async def home(tmp_path: Path, server: Server) -> AsyncIterator[House]:
    async with house(tmp_path, server) as home:
        yield home


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/admin/quotas", None),
        ("GET", "/admin/quotas/acme", None),
        ("PUT", "/admin/quotas/acme", {"floor_tokens": 64}),
        ("DELETE", "/admin/quotas/acme", None),
        ("GET", "/admin/public", None),
        ("POST", "/admin/public", {"messages": SYSTEM}),
        ("DELETE", "/admin/public/pub_1", None),
        ("GET", "/admin/caches", None),
        ("GET", "/admin/usage", None),
    ],
)
async def test_only_administrators_come_in(home: House, method: str, path: str, body: Any) -> None:
    user = home.tenancy.keys.create(KeyWish("acme")).text
    for key, status in (("", 401), ("hpk_wrong", 401), (user, 403)):
        headers = {"authorization": f"Bearer {key}"}
        response = await home.client.request(method, path, json=body, headers=headers)
        assert response.status_code == status, response.text
    assert home.tenancy.quotas.list() == []
    assert home.tenancy.public.list() == []


async def test_a_quota_holds_when_its_answer_is_there(home: House) -> None:
    body = {"floor_tokens": 64, "ceiling_tokens": 640, "at_ceiling": "reject", "requests_per_minute": 9}
    said = await home.ask("PUT", "/admin/quotas/acme", body)
    assert said.items() >= (body | {"tenant": "acme", "concurrent": None, "floor_is_whole": True}).items()
    quota = TenantQuota("acme", 64, 640, QuotaMode.REJECT, RateLimits(9))
    assert home.server.engine.quotas == (quota,) == tuple(home.tenancy.quotas.list())
    await home.ask("PUT", "/admin/quotas/@public", {"floor_tokens": 32})
    listed = await home.ask("GET", "/admin/quotas")
    assert [one["tenant"] for one in listed["data"]] == ["@public", "acme"]
    assert await home.ask("GET", "/admin/quotas/acme") == said
    # A quota is put as a whole: what is left out goes.
    assert (await home.ask("PUT", "/admin/quotas/acme", {"floor_tokens": 1}))["requests_per_minute"] is None
    for _ in range(2):
        assert (await home.ask("DELETE", "/admin/quotas/acme"))["floor_tokens"] == 0
    assert home.server.engine.quotas == (TenantQuota("@public", 32),)


async def test_a_floor_that_is_cut_is_told(home: House) -> None:
    home.server.engine.short = ("acme",)
    assert (await home.ask("PUT", "/admin/quotas/acme", {"floor_tokens": 10**9}))["floor_is_whole"] is False
    (line,) = home.server.lines("floors are cut: the reserve is smaller than their sum")
    assert (line["level"], line["tenants"]) == ("warning", ["acme"])


@pytest.mark.parametrize(
    ("tenant", "body", "param"),
    [
        ("acme", {"floor_tokens": -1}, "floor_tokens"),
        ("acme", {"ceiling_tokens": "many"}, "ceiling_tokens"),
        ("acme", {"at_ceiling": "shout"}, "at_ceiling"),
        ("acme", {"flor_tokens": 1}, "flor_tokens"),
        ("acme", {"concurrent": 0}, "concurrent"),
        ("acme", {"floor_tokens": 9, "ceiling_tokens": 8}, None),
        ("a b", {}, None),
    ],
)
async def test_bad_quotas(home: House, tenant: str, body: dict[str, Any], param: str | None) -> None:
    answer = await home.ask("PUT", f"/admin/quotas/{tenant}", body, 400)
    assert answer["error"]["param"] == param
    assert home.tenancy.quotas.list() == []
    assert home.server.engine.quotas == ()


async def test_a_prefix_is_public_and_private_again_at_once(home: House) -> None:
    added = await home.ask("POST", "/admin/public", {"name": "shop", "messages": SYSTEM}, 201)
    assert (added["name"], added["kind"], added["messages"]) == ("shop", "messages", 1)
    question = [*SYSTEM, {"role": "user", "content": "Do you have size 50?"}]
    assert home.shared(question) * 32 == added["shared_tokens"] == 64
    assert (await home.ask("POST", "/admin/public", {"messages": SYSTEM}))["id"] == added["id"]
    raw = await home.ask("POST", "/admin/public", {"text": "Once upon a time " * 4}, 201)
    assert [one["id"] for one in (await home.ask("GET", "/admin/public"))["data"]] == [added["id"], raw["id"]]
    assert (await home.ask("DELETE", f"/admin/public/{added['id']}"))["id"] == added["id"]
    assert home.shared(question) == 0
    gone = await home.ask("DELETE", f"/admin/public/{added['id']}", status=404)
    assert (gone["error"]["code"], gone["error"]["param"]) == ("prefix_not_found", "id")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "either"),
        ({"messages": SYSTEM, "text": "x"}, "either"),
        ({"text": "x", "tools": [{}]}, "no tools"),
        ({"messages": []}, "at least one"),
        ({"messages": [{"content": "x"}]}, "role"),
        ({"text": ""}, "at least 1"),
        ({"text": "x" * 5000}, "at most"),
        ({"text": "x", "salt": "y"}, "salt"),
    ],
)
async def test_bad_prefixes(home: House, body: dict[str, Any], says: str) -> None:
    assert says in str(await home.ask("POST", "/admin/public", body, 400))
    assert home.tenancy.public.list() == []


async def test_what_another_process_writes_is_followed(home: House) -> None:
    engine = home.server.engine
    async with home.grants.in_force():
        assert engine.quotas == () and engine.zone is None
        with open_tenancy(home.folder, SystemClock()) as other:
            other.quotas.set(TenantQuota("acme", 64))
            other.public.add(read_prefix(RULES.encode()), "shop")
            await until(lambda: engine.quotas == (TenantQuota("acme", 64),) and home.shared(SYSTEM) == 2)
            other.quotas.set(TenantQuota("acme"))
            await until(lambda: not engine.quotas)
    grants = len(home.server.lines("shares of the cache in force"))
    # A key is a change of the database, and none of shares.
    home.tenancy.keys.create(KeyWish("acme"))
    await home.grants.refresh()
    assert len(home.server.lines("shares of the cache in force")) == grants == 2


async def test_a_database_that_fails_for_a_while_is_told_once(
    home: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 0

    def fail(self: Database) -> tuple[int, int]:
        nonlocal failures
        failures += 1
        raise TenantError("The disk is full.")

    event = "changes of shares and prefixes are not seen"
    async with home.grants.in_force():
        with monkeypatch.context() as broken:
            broken.setattr(Database, "version", fail)
            await until(lambda: failures > 3)
        home.tenancy.quotas.set(TenantQuota("acme", 64))
        await until(lambda: bool(home.server.engine.quotas))
    assert len(home.server.lines(event)) == 1


async def test_a_stored_prefix_that_this_model_can_t_take_is_left_out(home: House) -> None:
    home.tenancy.public.add({"text": "x" * 5000}, "long")
    home.tenancy.public.add(read_prefix(RULES.encode()), "shop")
    await home.grants.refresh()
    assert home.shared(SYSTEM) == 2
    (line,) = home.server.lines("public prefix left out")
    assert "at most" in line["problem"]


async def test_named_caches_of_all_tenants(home: House) -> None:
    named = home.server.service.named
    for tenant, name in (("b", "two"), ("a", "one"), ("a", "three")):
        await named.put(tenant, name, {"text": "secret"}, [1, 2, 3], 60.0)
    data = (await home.ask("GET", "/admin/caches"))["data"]
    assert [(one["tenant"], one["name"], one["state"]) for one in data] == [
        ("a", "one", "warm"),
        ("a", "three", "warm"),
        ("b", "two", "warm"),
    ]
    assert "secret" not in str(data)
    assert [one["name"] for one in (await home.ask("GET", "/admin/caches?tenant=b"))["data"]] == ["two"]


async def test_usage_of_all_tenants(home: House) -> None:
    for number, tenant in enumerate(("a", "b", "a")):
        home.ledger.record(row(number, tenant=tenant, at=1_774_310_400.0 + number * 86_400))
    home.ledger.flush()
    usage = await home.ask("GET", "/admin/usage")
    assert [(one["tenant"], one["requests"], one["prompt"]) for one in usage["groups"]] == [
        ("a", 2, 200),
        ("b", 1, 100),
    ]
    assert [(total["requests"], total["money"]) for total in usage["totals"]] == [(3, "0.0002256")]
    later = await home.ask("GET", "/admin/usage?by=day&since=2026-03-25&until=2026-03-26T00:00:00Z")
    assert [(one["day"], one["requests"]) for one in later["groups"]] == [("2026-03-25", 1)]


@pytest.mark.parametrize("query", ["by=colour", "since=soon", "until=yesterday", "tenant=a"])
async def test_bad_questions_name_the_parameter(home: House, query: str) -> None:
    error = (await home.ask("GET", f"/admin/usage?{query}", status=400))["error"]
    assert error["param"] == query.partition("=")[0]


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.005)
