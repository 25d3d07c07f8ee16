"""Who a request belongs to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """`tenant` separates caches, ledger and sessions; `key_id` names the credential, never shows it."""

    tenant: str
    key_id: str
    is_admin: bool = False
