"""From a request's headers to who it is."""

from __future__ import annotations

from collections.abc import Mapping

from hotprefix.base.errors import Forbidden, Unauthenticated
from hotprefix.tenants.derive import credential_salt, tenant_salt
from hotprefix.tenants.identity import Identity
from hotprefix.tenants.key_store import KeyStore
from hotprefix.tenants.limiter import Subject
from hotprefix.tenants.quota import QuotaStore

_SHOWN = 16
_HEADERS = ("x-api-key", "api-key")


class Authenticator:
    """Knows a key's tenant; without any key, and unless `require_keys`, everybody is let in.

    In that open mode a credential is a tenant of its own, so that clients with different ones stay
    apart; all clients without one share a tenant. The server is closed by its first key.
    """

    def __init__(self, keys: KeyStore, quotas: QuotaStore, secret: bytes, *, require_keys: bool) -> None:
        self._keys = keys
        self._quotas = quotas
        self._secret = secret
        self._require_keys = require_keys

    @property
    def is_open(self) -> bool:
        """Whether everybody is let in."""
        return not self._require_keys and not self._keys.has_keys()

    def identify(self, headers: Mapping[str, str]) -> Identity:
        """Who sends these headers (names in lower case). Raises `Unauthenticated`."""
        credential = credential_of(headers)
        if self.is_open:
            return open_identity(self._secret, credential)
        if not credential:
            raise Unauthenticated(
                "This server needs an API key: send 'Authorization: Bearer hpk_…' or 'x-api-key: hpk_…'."
            )
        key = self._keys.verify(credential)
        return Identity(key.tenant, key.id, key.is_admin, tenant_salt(self._secret, key.tenant))

    def subjects(self, identity: Identity) -> list[Subject]:
        """Whose rate limits a request counts toward: its key's and its tenant's. None in open mode."""
        if not identity.key_id.startswith("key_"):
            return []
        return [
            Subject("key", identity.key_id, self._keys.get(identity.key_id).limits),
            Subject("tenant", identity.tenant, self._quotas.get(identity.tenant).limits),
        ]


def require_admin(identity: Identity) -> None:
    """Raise `Forbidden` unless the key is an administrator's."""
    if not identity.is_admin:
        raise Forbidden(
            "This needs an administrator's key: make one with 'hotprefix keys create TENANT --admin'."
        )


def credential_of(headers: Mapping[str, str]) -> str:
    """The first of `Authorization`, `x-api-key` and `api-key` that holds anything.

    A bearer token counts without its scheme, so that it is the same credential in every header.
    """
    authorization = headers.get("authorization", "").strip()
    if authorization:
        scheme, _, rest = authorization.partition(" ")
        token = rest.strip() if scheme.lower() == "bearer" else authorization
        if token:
            return token
    return next((value for name in _HEADERS if (value := headers.get(name, "").strip())), "")


def open_identity(secret: bytes, credential: str) -> Identity:
    """Who a credential is where no key exists: named by a digest, which says nothing about it."""
    salt = credential_salt(secret, credential)
    # No named tenant can have a colon in its name.
    name = f"open:{salt[:_SHOWN]}" if credential else "open:"
    return Identity(name, name, salt=salt)
