"""How much is kept."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """Beyond these, what was not used for longest goes first. Sizes in bytes.

    A tenant has at most `tenant_rows` responses of `tenant_bytes` together; all tenants have `total_bytes`.
    `tombstones` remember, for all tenants together, what is gone.
    """

    tenant_rows: int = 10_000
    tenant_bytes: int = 256 * 1024**2
    total_bytes: int = 2 * 1024**3
    tombstones: int = 100_000


DEFAULT_LIMITS = StoreLimits()
