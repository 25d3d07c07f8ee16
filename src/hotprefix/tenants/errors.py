"""What can be wrong with tenants and their keys, told to operators."""

from __future__ import annotations

from hotprefix.base.errors import HotprefixError


class TenantError(HotprefixError):
    """A key, tenant or public prefix can't be made, found or read."""


class UnknownKey(TenantError):
    """There is no key with this id."""


class UnknownPrefix(TenantError):
    """There is no public prefix with this id."""
