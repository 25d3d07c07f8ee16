"""Keys, quotas and public prefixes as JSON shows them, on the wire and on the command line."""

from __future__ import annotations

from typing import Any

from hotprefix.tenants.api_key import ApiKey, RateLimits
from hotprefix.tenants.public_prefix import PublicPrefix
from hotprefix.tenants.quota import TenantQuota

_SHOWN = 40


def key_facts(key: ApiKey, now: float) -> dict[str, Any]:
    """A key at Unix time `now`; never its text."""
    return {
        "id": key.id,
        "tenant": key.tenant,
        "name": key.name,
        "hint": f"hpk_…{key.hint}",
        "state": key.state(now).value,
        "admin": key.is_admin,
        "created": key.created,
        "expires": key.expires,
        "revoked": key.revoked,
        **_limits(key.limits),
    }


def quota_facts(quota: TenantQuota) -> dict[str, Any]:
    """What a tenant may have."""
    return {
        "tenant": quota.tenant,
        "floor_tokens": quota.floor_tokens,
        "ceiling_tokens": quota.ceiling_tokens,
        "at_ceiling": quota.mode.value,
        **_limits(quota.limits),
    }


def prefix_facts(prefix: PublicPrefix) -> dict[str, Any]:
    """A public prefix and how it begins."""
    content = " ".join((prefix.text or str(prefix.messages[0].get("content") or "")).split())
    return {
        "id": prefix.id,
        "name": prefix.name,
        "kind": "text" if prefix.text else "messages",
        "messages": len(prefix.messages),
        "tools": len(prefix.tools),
        "begins_with": content[:_SHOWN] + ("…" if len(content) > _SHOWN else ""),
        "created": prefix.created,
    }


def _limits(limits: RateLimits) -> dict[str, int | None]:
    return {
        "requests_per_minute": limits.requests_per_minute,
        "tokens_per_minute": limits.tokens_per_minute,
        "concurrent": limits.concurrent,
    }
