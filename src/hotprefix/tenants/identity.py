"""Who a request belongs to."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """`tenant` names whose ledger and sessions these are; `key_id` names the credential, never shows it.

    `salt` separates caches: it is derived from the credential's tenant and is what the engine is given.
    """

    tenant: str
    key_id: str
    is_admin: bool = False
    salt: str = ""
