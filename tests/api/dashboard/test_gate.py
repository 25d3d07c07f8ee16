"""Who may look at prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Scope

from hotprefix.api.dashboard.gate import Gate, Visitor
from hotprefix.api.identity import Doorman
from hotprefix.base.clock import SystemClock
from hotprefix.base.errors import Forbidden, Unauthenticated
from hotprefix.tenants.api_key import KeyWish
from hotprefix.tenants.authenticator import Authenticator
from hotprefix.tenants.limiter import RateLimiter
from hotprefix.tenants.tenancy import Tenancy, open_tenancy

NEAR = ("127.0.0.1", 50_000)


def scope(peer: Any = NEAR, host: str = "127.0.0.1:8080", **headers: str) -> Scope:
    named = {"host": host} | {name.replace("_", "-"): value for name, value in headers.items()}
    pairs = [(name.encode(), value.encode()) for name, value in named.items() if value]
    return {"type": "http", "client": peer, "headers": pairs}


@pytest.fixture
def tenancy(tmp_path: Path) -> Iterator[Tenancy]:
    with open_tenancy(tmp_path, SystemClock()) as tenancy:
        yield tenancy


def gate_of(tenancy: Tenancy, *, require_keys: bool = False) -> Gate:
    door = Authenticator(tenancy.keys, tenancy.quotas, tenancy.secret, require_keys=require_keys)
    return Gate(Doorman(door, RateLimiter(), SystemClock()))


@pytest.mark.parametrize(
    "asked",
    [
        scope(),
        scope(host="localhost"),
        scope(host="LocalHost:9000"),
        scope(host="127.0.0.2"),
        scope(("::1", 5), host="[::1]:8080"),
        scope(("::ffff:127.0.0.1", 5), host="[::1]"),
        scope(sec_fetch_site="same-origin"),
        scope(sec_fetch_site="none"),
    ],
)
def test_without_keys_this_machine_sees_all(tenancy: Tenancy, asked: Scope) -> None:
    assert gate_of(tenancy).visitor(asked) == Visitor(None)
    assert Gate(None).visitor(asked) == Visitor(None)


@pytest.mark.parametrize(
    "asked",
    [
        scope(("192.168.0.7", 5)),
        scope(None),
        scope(("testclient", 5)),
        scope(host=""),
        # A page whose name was made to resolve to this machine.
        scope(host="evil.example:8080"),
        scope(host="127.0.0.1.evil.example"),
        scope(host="localhost.evil.example"),
        scope(host="10.0.0.1:8080"),
        # A page on another port of this machine, or from elsewhere.
        scope(sec_fetch_site="same-site"),
        scope(sec_fetch_site="cross-site"),
        # Behind a proxy everybody looks near.
        scope(x_forwarded_for="203.0.113.9"),
        scope(forwarded="for=203.0.113.9"),
        scope(x_real_ip="203.0.113.9"),
        scope(via="1.1 proxy"),
    ],
)
def test_without_keys_nobody_else_sees_anything(tenancy: Tenancy, asked: Scope) -> None:
    with pytest.raises(Forbidden, match="hotprefix keys create"):
        gate_of(tenancy).visitor(asked)
    with pytest.raises(Forbidden):
        Gate(None).visitor(asked)


def test_the_first_key_closes_it_at_once(tenancy: Tenancy) -> None:
    gate = gate_of(tenancy)
    assert gate.is_open
    key = tenancy.keys.create(KeyWish("ops", is_admin=True))
    assert not gate.is_open
    with pytest.raises(Unauthenticated):
        gate.visitor(scope())
    far = scope(("192.168.0.7", 5), host="llm.example", authorization=f"Bearer {key.text}")
    assert gate.visitor(far) == Visitor(None)
    tenancy.keys.revoke(key.key.id)
    with pytest.raises(Unauthenticated):
        gate.visitor(far)  # the same connection, asked again


def test_a_tenants_key_sees_its_tenant(tenancy: Tenancy) -> None:
    key = tenancy.keys.create(KeyWish("acme"))
    visitor = gate_of(tenancy).visitor(scope(authorization=f"Bearer {key.text}"))
    assert visitor == Visitor("acme")
    assert not visitor.sees_all


def test_where_keys_are_required_nobody_comes_in_without(tenancy: Tenancy) -> None:
    with pytest.raises(Unauthenticated):
        gate_of(tenancy, require_keys=True).visitor(scope())
