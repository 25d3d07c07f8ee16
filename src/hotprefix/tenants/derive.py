"""Digests of credentials and tenants, keyed with the server's secret.

A key of ours has 256 random bits, so guessing one is hopeless whatever the digest costs: a fast keyed
digest is as safe as a slow one, and every request needs one. The secret lies outside the database,
so a stolen database says neither which key is which nor whether a guess is right. Every field is
preceded by its length, so ("org_1", "2345") and ("org_12345", "") differ.
"""

from __future__ import annotations

from hashlib import blake2b

DIGEST_BYTES = 32
_KEY_PERSON = b"hotprefix/apikey"
_SALT_PERSON = b"hotprefix/tenant"


def key_digest(secret: bytes, presented: str) -> bytes:
    """What is stored of an API key, and what a presented one is looked up by."""
    return _digest(secret, _KEY_PERSON, presented)


def tenant_salt(secret: bytes, tenant: str) -> str:
    """The cache salt of a named tenant."""
    return _digest(secret, _SALT_PERSON, "tenant", tenant).hex()


def credential_salt(secret: bytes, credential: str) -> str:
    """The cache salt of a credential that belongs to no named tenant; empty for no credential."""
    return _digest(secret, _SALT_PERSON, "credential", credential).hex()


def _digest(secret: bytes, person: bytes, *fields: str) -> bytes:
    digest = blake2b(digest_size=DIGEST_BYTES, key=secret, person=person)
    for field in fields:
        # Headers may hold anything; two different ones must not become the same bytes.
        data = field.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.digest()
