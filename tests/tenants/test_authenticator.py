"""Who a request is, from its headers alone."""

from __future__ import annotations

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.base.errors import Forbidden, Unauthenticated
from hotprefix.tenants.api_key import KeyWish, RateLimits
from hotprefix.tenants.authenticator import Authenticator, credential_of, require_admin
from hotprefix.tenants.identity import Identity
from hotprefix.tenants.limiter import Subject
from hotprefix.tenants.quota import TenantQuota
from hotprefix.tenants.tenancy import Tenancy


@pytest.fixture
def door(tenancy: Tenancy) -> Authenticator:
    return Authenticator(tenancy.keys, tenancy.quotas, tenancy.secret, require_keys=False)


def bearer(text: str) -> dict[str, str]:
    return {"authorization": f"Bearer {text}"}


@pytest.mark.parametrize(
    ("headers", "credential"),
    [
        ({}, ""),
        ({"authorization": "Bearer abc"}, "abc"),
        ({"authorization": "bearer   abc "}, "abc"),
        ({"authorization": "Basic abc"}, "Basic abc"),
        ({"x-api-key": "abc"}, "abc"),
        ({"api-key": "abc"}, "abc"),
        ({"authorization": "", "x-api-key": " ", "api-key": "abc"}, "abc"),
        ({"authorization": "Bearer a", "x-api-key": "b", "api-key": "c"}, "a"),
        ({"x-api-key": "b", "api-key": "c"}, "b"),
        ({"authorization": "Bearer "}, ""),
        ({"authorization": "Bearer ", "x-api-key": "abc"}, "abc"),
    ],
)
def test_where_a_credential_may_stand(headers: dict[str, str], credential: str) -> None:
    assert credential_of(headers) == credential


def test_open_mode_keeps_different_credentials_apart(door: Authenticator) -> None:
    one, two, nobody = door.identify(bearer("sk-1")), door.identify(bearer("sk-2")), door.identify({})
    assert len({one.salt, two.salt, nobody.salt}) == len({one.tenant, two.tenant, nobody.tenant}) == 3
    assert door.identify({"x-api-key": "sk-1"}) == one
    assert not (one.is_admin or nobody.is_admin)
    assert "sk-1" not in repr(one)
    assert door.subjects(one) == door.subjects(nobody) == []


def test_the_first_key_closes_the_door(door: Authenticator, tenancy: Tenancy) -> None:
    door.identify({})
    made = tenancy.keys.create(KeyWish("acme"))
    for headers in ({}, bearer("sk-1"), {"authorization": f"Basic {made.text}"}):
        with pytest.raises(Unauthenticated):
            door.identify(headers)
    identity = door.identify(bearer(made.text))
    assert (identity.tenant, identity.key_id, identity.is_admin) == ("acme", made.key.id, False)
    for name in ("x-api-key", "api-key"):
        assert door.identify({name: made.text}) == identity


def test_keys_can_be_required_before_there_are_any(tenancy: Tenancy) -> None:
    door = Authenticator(tenancy.keys, tenancy.quotas, tenancy.secret, require_keys=True)
    with pytest.raises(Unauthenticated, match="needs an API key"):
        door.identify({})
    with pytest.raises(Unauthenticated, match="hpk_"):
        door.identify(bearer("sk-1"))


def test_two_keys_of_one_tenant_share_its_salt_and_no_other(door: Authenticator, tenancy: Tenancy) -> None:
    texts = [tenancy.keys.create(KeyWish(name)).text for name in ("acme", "acme", "other")]
    first, second, other = (door.identify(bearer(text)) for text in texts)
    assert first.salt == second.salt != other.salt
    assert first.key_id != second.key_id
    assert tenancy.secret.hex() not in repr(first)


def test_the_salt_stays_when_the_key_is_rotated(door: Authenticator, tenancy: Tenancy) -> None:
    old = tenancy.keys.create(KeyWish("acme"))
    salt = door.identify(bearer(old.text)).salt
    new = tenancy.keys.rotate(old.key.id)
    assert door.identify(bearer(new.text)).salt == salt


def test_whose_limits_count(door: Authenticator, tenancy: Tenancy) -> None:
    made = tenancy.keys.create(KeyWish("acme", limits=RateLimits(5)))
    tenancy.quotas.set(TenantQuota("acme", limits=RateLimits(concurrent=3)))
    identity = door.identify(bearer(made.text))
    assert door.subjects(identity) == [
        Subject("key", made.key.id, RateLimits(5)),
        Subject("tenant", "acme", RateLimits(concurrent=3)),
    ]


def test_administrators(door: Authenticator, tenancy: Tenancy, clock: ManualClock) -> None:
    with pytest.raises(Forbidden, match="administrator"):
        require_admin(Identity("acme", "key_1"))
    made = tenancy.keys.create(KeyWish("ops", is_admin=True))
    require_admin(door.identify(bearer(made.text)))
