"""Keys, limits and the admin API over ASGI and a real database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route, Router
from starlette.types import Receive, Scope, Send

from hotprefix.api.admin_desk import AdminDesk
from hotprefix.api.admin_keys import AdminKeys
from hotprefix.api.boundary import Boundary
from hotprefix.api.identity import Doorman
from hotprefix.api.respond import send_json
from hotprefix.api.settings import ApiSettings
from hotprefix.base.clock import ManualClock
from hotprefix.tenants.api_key import KeyWish, RateLimits
from hotprefix.tenants.authenticator import Authenticator
from hotprefix.tenants.limiter import RateLimiter
from hotprefix.tenants.quota import TenantQuota
from hotprefix.tenants.tenancy import Tenancy, open_tenancy
from tests.api.support import Server

pytestmark = pytest.mark.anyio


class Echo:
    """Says who asks. `?tokens=` are charged, and the request is held while `gate` is shut."""

    def __init__(self, doorman: Doorman) -> None:
        self._doorman = doorman
        self.gate = asyncio.Event()
        self.gate.set()
        self.inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._doorman.admitted(scope) as admission:
            self.inside += 1
            await self.gate.wait()
            admission.charge(int(dict(httpx.QueryParams(scope["query_string"])).get("tokens", "0")))
            identity = admission.identity
            assert self._doorman.identify(scope) is identity
            await send_json(
                send, 200, {"tenant": identity.tenant, "key": identity.key_id, "salt": identity.salt}
            )


@dataclass
class House:
    tenancy: Tenancy
    clock: ManualClock
    echo: Echo
    client: httpx.AsyncClient

    def key(self, tenant: str = "acme", **fields: object) -> dict[str, str]:
        made = self.tenancy.keys.create(KeyWish(tenant, **fields))  # type: ignore[arg-type]
        return {"authorization": f"Bearer {made.text}"}


@asynccontextmanager
async def house(folder: Path, server: Server) -> AsyncIterator[House]:
    clock = ManualClock(1_000_000.0)
    with open_tenancy(folder, clock) as tenancy, ThreadPoolExecutor(1) as workers:
        door = Authenticator(tenancy.keys, tenancy.quotas, tenancy.secret, require_keys=False)
        doorman = Doorman(door, RateLimiter(), clock)
        admin = AdminKeys(AdminDesk(doorman, workers, ApiSettings()), tenancy.keys, clock)
        echo = Echo(doorman)
        routes = [*admin.routes(), Route("/who", echo)]
        assert isinstance(server.app, Boundary)
        app = Boundary(Router(routes, redirect_slashes=False), server.app._service)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            yield House(tenancy, clock, echo, client)


@pytest.fixture
async def home(tmp_path: Path, server: Server) -> AsyncIterator[House]:
    async with house(tmp_path, server) as home:
        yield home


async def test_open_until_the_first_key(home: House) -> None:
    nobody = (await home.client.get("/who")).json()
    somebody = (await home.client.get("/who", headers={"x-api-key": "sk-1"})).json()
    assert nobody["salt"] != somebody["salt"]
    headers = home.key()
    for wrong in ({}, {"x-api-key": "sk-1"}, {"authorization": "Bearer hpk_" + "A" * 43}):
        response = await home.client.get("/who", headers=wrong)
        assert response.status_code == 401
        assert response.json()["error"]["code"] == "invalid_api_key"
        assert response.headers["www-authenticate"] == "Bearer"
    assert (await home.client.get("/who", headers=headers)).json()["tenant"] == "acme"


async def test_the_salt_comes_from_the_credential_alone(home: House) -> None:
    alice, bob = home.key("alice"), home.key("bob")
    salt = (await home.client.get("/who", headers=alice)).json()["salt"]
    for pretence in (
        {"x-cache-salt": salt},
        {"x-tenant": "alice"},
        {"x-api-key": alice["authorization"][7:]},
    ):
        mine = await home.client.get("/who", headers=bob | pretence, params={"cache_salt": salt})
        assert mine.json()["tenant"] == "bob"
        assert mine.json()["salt"] != salt


async def test_a_limit_says_which_and_when(home: House) -> None:
    headers = home.key(limits=RateLimits(requests_per_minute=2))
    for _ in range(2):
        assert (await home.client.get("/who", headers=headers)).status_code == 200
    refused = await home.client.get("/who", headers=headers)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "30")
    error = refused.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
    assert "2 requests a minute" in error["message"] and "30 s" in error["message"]
    home.clock.advance(30)
    assert (await home.client.get("/who", headers=headers)).status_code == 200


async def test_a_tenants_tokens_are_shared_by_its_keys(home: House) -> None:
    home.tenancy.quotas.set(TenantQuota("acme", limits=RateLimits(tokens_per_minute=600)))
    one, two, other = home.key(), home.key(), home.key("other")
    assert (await home.client.get("/who?tokens=600", headers=one)).status_code == 200
    refused = await home.client.get("/who?tokens=100", headers=two)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "10")
    assert (await home.client.get("/who?tokens=100", headers=other)).status_code == 200


async def test_a_request_is_out_when_it_ends_however_it_ends(home: House) -> None:
    headers = home.key(limits=RateLimits(concurrent=1))
    home.echo.gate.clear()
    running = asyncio.create_task(home.client.get("/who", headers=headers))
    async with asyncio.timeout(10):
        while not home.echo.inside:
            await asyncio.sleep(0.001)
    assert (await home.client.get("/who", headers=headers)).status_code == 429
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    home.echo.gate.set()
    assert (await home.client.get("/who?tokens=x", headers=headers)).status_code == 500
    assert (await home.client.get("/who", headers=headers)).status_code == 200


ADMIN_CALLS = [
    ("POST", "/admin/keys", {"tenant": "evil", "admin": True}),
    ("GET", "/admin/keys", None),
    ("DELETE", "/admin/keys/{id}", None),
    ("POST", "/admin/keys/{id}/rotate", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), ADMIN_CALLS)
async def test_only_administrators_come_in(
    home: House, method: str, path: str, body: dict[str, object] | None
) -> None:
    # Not even where the server is open to everybody, with whatever credential.
    for headers in ({}, {"x-api-key": "sk-1"}):
        response = await home.client.request(method, path.format(id="key_1"), json=body, headers=headers)
        assert response.status_code == 403, response.text
    made = home.tenancy.keys.create(KeyWish("acme"))
    url = path.format(id=made.key.id)
    assert (await home.client.request(method, url, json=body)).status_code == 401
    response = await home.client.request(method, url, json=body, headers={"x-api-key": made.text})
    assert (response.status_code, response.json()["error"]["code"]) == (403, "permission_denied")
    assert home.tenancy.keys.list() == [made.key]


async def test_the_life_of_a_key_over_http(home: House) -> None:
    admin = home.key("ops", is_admin=True)
    wish = {"tenant": "acme", "name": "web", "expires_in": 3600, "requests_per_minute": 9, "concurrent": 2}
    made = await home.client.post("/admin/keys", json=wish, headers=admin)
    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    key = made.json()
    assert key["expires"] == home.clock.wall() + 3600
    assert (key["tenant"], key["name"], key["requests_per_minute"], key["admin"]) == ("acme", "web", 9, False)
    user = {"authorization": f"Bearer {key['key']}"}
    assert (await home.client.get("/who", headers=user)).json()["key"] == key["id"]

    listed = (await home.client.get("/admin/keys", headers=admin)).json()["data"]
    assert [entry["tenant"] for entry in listed] == ["ops", "acme"]
    assert all("key" not in entry for entry in listed)
    only = (await home.client.get("/admin/keys?tenant=acme", headers=admin)).json()["data"]
    assert [entry["id"] for entry in only] == [key["id"]]

    url = f"/admin/keys/{key['id']}"
    new = (await home.client.post(f"{url}/rotate", json={"overlap": 60}, headers=admin)).json()
    assert (await home.client.get("/who", headers=user)).status_code == 200
    home.clock.advance(60)
    assert (await home.client.get("/who", headers=user)).status_code == 401
    user = {"authorization": f"Bearer {new['key']}"}
    assert (await home.client.get("/who", headers=user)).json()["tenant"] == "acme"

    gone = await home.client.delete(f"/admin/keys/{new['id']}", headers=admin)
    assert (gone.status_code, gone.json()["state"]) == (200, "revoked")
    assert (await home.client.get("/who", headers=user)).status_code == 401


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "tenant"),
        ({"tenant": 1}, "tenant"),
        ({"tenant": "a b"}, None),
        ({"tenant": "acme", "expires_in": 0}, "expires_in"),
        ({"tenant": "acme", "expires_in": 1e12}, "expires_in"),
        ({"tenant": "acme", "concurrent": 0}, "concurrent"),
        ({"tenant": "acme", "admin": "yes"}, "admin"),
        ({"tenant": "acme", "adminn": True}, "adminn"),
        ({"tenant": "acme", "name": "x" * 101}, None),
    ],
)
async def test_bad_wishes(home: House, body: dict[str, object], param: str | None) -> None:
    response = await home.client.post("/admin/keys", json=body, headers=home.key("ops", is_admin=True))
    assert (response.status_code, response.json()["error"]["param"]) == (400, param), response.text
    assert len(home.tenancy.keys.list()) == 1


async def test_unknown_keys_and_dead_ones(home: House) -> None:
    admin = home.key("ops", is_admin=True)
    for method, path in (("DELETE", "/admin/keys/key_x"), ("POST", "/admin/keys/key_x/rotate")):
        response = await home.client.request(method, path, json={}, headers=admin)
        assert (response.status_code, response.json()["error"]["code"]) == (404, "key_not_found")
    made = home.tenancy.keys.create(KeyWish("acme"))
    home.tenancy.keys.revoke(made.key.id)
    response = await home.client.post(f"/admin/keys/{made.key.id}/rotate", json={}, headers=admin)
    assert response.status_code == 400 and "revoked" in response.json()["error"]["message"]
