"""An API key as it is known once it has been shown: everything but the key itself."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from hotprefix.tenants.errors import TenantError

KEY_PREFIX = "hpk_"
_RANDOM_BYTES = 32
"""43 url-safe characters."""
_KEY = re.compile(r"hpk_[A-Za-z0-9_-]{43}")
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_LONGEST_NAME = 100


@dataclass(frozen=True, slots=True)
class RateLimits:
    """What may be asked for; None is no limit. `concurrent` counts requests in flight."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent: int | None = None

    def __post_init__(self) -> None:
        for value in (self.requests_per_minute, self.tokens_per_minute, self.concurrent):
            if value is not None and not 0 < value < 2**53:
                raise TenantError(f"A rate limit is a number above 0, not {value}.")

    @property
    def is_none(self) -> bool:
        """Whether nothing is limited."""
        return self == RateLimits()


class KeyState(StrEnum):
    """Whether a key opens anything."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """Times in Unix seconds; `hint` is the key's last four characters, to recognise it by."""

    id: str
    tenant: str
    name: str
    hint: str
    created: float
    expires: float | None = None
    revoked: float | None = None
    is_admin: bool = False
    limits: RateLimits = RateLimits()

    def state(self, now: float) -> KeyState:
        """What the key is worth at Unix time `now`."""
        if self.revoked is not None and self.revoked <= now:
            return KeyState.REVOKED
        if self.expires is not None and self.expires <= now:
            return KeyState.EXPIRED
        return KeyState.ACTIVE


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made. `text` is shown once and kept nowhere."""

    key: ApiKey
    text: str

    def __repr__(self) -> str:
        return f"NewKey({self.key!r})"


@dataclass(frozen=True, slots=True)
class KeyWish:
    """What a new key shall be. `expires` in Unix seconds. Raises `TenantError` for bad names."""

    tenant: str
    name: str = ""
    expires: float | None = None
    is_admin: bool = False
    limits: RateLimits = RateLimits()

    def __post_init__(self) -> None:
        require_tenant(self.tenant)
        if len(self.name) > _LONGEST_NAME or not self.name.isprintable():
            raise TenantError(f"A key's name is at most {_LONGEST_NAME} printable characters.")


def require_tenant(name: str) -> None:
    """Raise `TenantError` unless `name` can be a tenant's."""
    if not _TENANT.fullmatch(name):
        raise TenantError(
            f"'{name[:80]}' can't be a tenant's name: write up to 64 letters, digits and '._@-', "
            "a letter or digit first."
        )


def new_text() -> str:
    """A fresh key."""
    return KEY_PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)


def new_id() -> str:
    """A fresh id of a key, no secret."""
    return f"key_{secrets.token_hex(8)}"


def is_key(text: str) -> bool:
    """Whether `text` has the shape of a key."""
    return _KEY.fullmatch(text) is not None
