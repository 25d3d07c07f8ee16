"""What tenants may have: shares of the cache and rate limits, in the database."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hotprefix.keys.zones import PUBLIC_TENANT
from hotprefix.kv.accounts import Limits, QuotaMode
from hotprefix.tenants.api_key import RateLimits, require_tenant
from hotprefix.tenants.database import Database
from hotprefix.tenants.errors import TenantError

_COLUMNS = "tenant, floor_tokens, ceiling_tokens, mode, requests_per_minute, tokens_per_minute, concurrent"
_UPSERT = f"INSERT OR REPLACE INTO tenant_quota ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class TenantQuota:
    """Shares of the cache in tokens, so that they mean the same in every KV format.

    `floor_tokens` can't be evicted by others; more than `ceiling_tokens` is not kept, by `mode`.
    The tenant `@public` is the public zone.
    """

    tenant: str
    floor_tokens: int = 0
    ceiling_tokens: int | None = None
    mode: QuotaMode = QuotaMode.BORROW
    limits: RateLimits = field(default_factory=RateLimits)

    def __post_init__(self) -> None:
        if self.tenant != PUBLIC_TENANT:
            require_tenant(self.tenant)
        if self.floor_tokens < 0 or (self.ceiling_tokens is not None and self.ceiling_tokens < 0):
            raise TenantError("Shares of the cache are numbers of tokens, 0 or more.")
        if self.ceiling_tokens is not None and self.ceiling_tokens < self.floor_tokens:
            raise TenantError(
                f"The ceiling of {self.ceiling_tokens:,} tokens is below the floor of {self.floor_tokens:,}; "
                "raise the one or lower the other."
            )

    def blocks(self, block_size: int) -> Limits:
        """The share of the cache in blocks: the floor rounded up, the ceiling down, not below the floor."""
        floor = -(-self.floor_tokens // block_size)
        ceiling = None if self.ceiling_tokens is None else max(floor, self.ceiling_tokens // block_size)
        return Limits(floor, ceiling, self.mode)


class QuotaStore:
    """Quotas by tenant. Any thread may use it; what is read is as new as the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, tenant: str) -> TenantQuota:
        """A tenant's quota; one without limits if none was set."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM tenant_quota WHERE tenant = ?", (tenant,))
        return _quota(rows[0]) if rows else TenantQuota(tenant)

    def list(self) -> list[TenantQuota]:
        """Every quota that was set, by tenant."""
        return [
            _quota(row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM tenant_quota ORDER BY tenant")
        ]

    def set(self, quota: TenantQuota) -> None:
        """Replace a tenant's quota; one without limits is forgotten."""
        limits = quota.limits
        values = (
            *(quota.tenant, quota.floor_tokens, quota.ceiling_tokens, quota.mode.value),
            *(limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent),
        )
        if quota == TenantQuota(quota.tenant):
            delete = "DELETE FROM tenant_quota WHERE tenant = ?"
            self._database.write(lambda connection: connection.execute(delete, (quota.tenant,)))
        else:
            self._database.write(lambda connection: connection.execute(_UPSERT, values))


def granted(
    quotas: Sequence[TenantQuota], block_size: int, reserve: int
) -> tuple[dict[str, Limits], list[str]]:
    """Shares in blocks by tenant, and the tenants whose floor does not fit into the reserve any more.

    Floors are granted in the order of `quotas`; those that don't fit get what is left.
    """
    limits: dict[str, Limits] = {}
    short: list[str] = []
    left = reserve
    for quota in quotas:
        share = quota.blocks(block_size)
        if share.floor > left:
            short.append(quota.tenant)
            share = Limits(left, share.ceiling, share.mode)
        left -= share.floor
        limits[quota.tenant] = share
    return limits, short


def _quota(row: tuple[Any, ...]) -> TenantQuota:
    tenant, floor, ceiling, mode, *limits = row
    return TenantQuota(tenant, floor, ceiling, QuotaMode(mode), RateLimits(*limits))
