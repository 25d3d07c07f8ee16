"""Derivations: golden vectors, and pairs that must differ."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hotprefix.keys.scope import CacheScope
from hotprefix.keys.zones import PUBLIC_TENANT
from hotprefix.tenants.derive import _digest, credential_salt, key_digest, tenant_salt

SECRET = bytes(range(32))


def test_golden_vectors() -> None:
    """Stored keys and caches on disk hang on these bytes: a change makes all of them useless."""
    assert (
        key_digest(SECRET, "hpk_" + "A" * 43).hex()
        == "ee999847481117af94378684a4ffb27fdbf10967ebed88acba9afd150e09c23a"
    )
    assert tenant_salt(SECRET, "acme") == "15d06a1eaf13bbda34d186d39b8812fbf56e9c8a02c7bdb2be9cb9877227cf50"
    assert (
        credential_salt(SECRET, "sk-1") == "00b79a21160a27f88016552777ab1483d9acc74a67af3e6f3a74f9eaa7515c6b"
    )


def test_neighbouring_fields_do_not_run_into_each_other() -> None:
    person = b"hotprefix/tenant"
    assert _digest(SECRET, person, "org_1", "2345") != _digest(SECRET, person, "org_12345", "")
    assert _digest(SECRET, person, "ab", "c") != _digest(SECRET, person, "a", "bc")
    assert _digest(SECRET, person, "a") != _digest(SECRET, person, "a", "")


@given(st.text(max_size=8), st.text(max_size=8), st.text(max_size=8), st.text(max_size=8))
def test_different_fields_have_different_digests(a: str, b: str, c: str, d: str) -> None:
    digests = [_digest(SECRET, b"p", *fields) for fields in ((a, b), (c, d))]
    assert (digests[0] == digests[1]) == ((a, b) == (c, d))


def test_a_tenant_a_credential_and_a_key_of_the_same_text_are_three_things() -> None:
    names = [
        tenant_salt(SECRET, "same"), credential_salt(SECRET, "same"), key_digest(SECRET, "same").hex(),
        tenant_salt(SECRET, ""), credential_salt(SECRET, ""), tenant_salt(bytes(32), "same"),
    ]  # fmt: skip
    assert len(set(names)) == len(names)


def test_an_adapter_named_like_a_salt_opens_no_other_cache() -> None:
    salt = tenant_salt(SECRET, "acme")
    scopes = [
        CacheScope("m", "f", tenant=salt),
        CacheScope("m", "f", adapter=salt),
        CacheScope("m", "f", adapter=salt, tenant=salt),
        CacheScope("m", f"f{salt}"),
        CacheScope("m", "f", tenant=PUBLIC_TENANT),
        CacheScope("m", "f", tenant="acme"),
    ]
    for left, right in itertools.combinations([scope.root(SECRET) for scope in scopes], 2):
        assert left != right


def test_a_name_can_not_be_the_public_zones_salt() -> None:
    assert tenant_salt(SECRET, PUBLIC_TENANT) != PUBLIC_TENANT
    assert credential_salt(SECRET, PUBLIC_TENANT) != PUBLIC_TENANT


def test_odd_headers_do_not_fail() -> None:
    assert len({credential_salt(SECRET, text) for text in ("\udc80", "\udc81", "é", "\0")}) == 4
