"""One request in the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from hotprefix.diagnosis.reason import MissReport
from hotprefix.modes.classes import TokenClasses


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A request that reached the engine; `request_id` is unique and makes writing it twice harmless.

    `at` is in Unix seconds, times in seconds, `money` in `currency` (see `money.bill`). `status` is the HTTP
    status, `finish` the finish reason, `aborted` included.
    """

    request_id: str
    at: float
    tenant: str
    key_id: str
    model: str
    dialect: str
    profile: str
    scene: str
    prompt_name: str
    prompt_version: str
    classes: TokenClasses
    report: MissReport
    money: Decimal
    currency: str
    first_token: float | None
    total: float
    status: int
    finish: str
