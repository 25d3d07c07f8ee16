"""A ledger row as columns: what the database and exports hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from decimal import Decimal
from typing import Any

import orjson

from hotprefix.ledger.errors import RowRefused
from hotprefix.ledger.money import PICO, day_of
from hotprefix.ledger.row import LedgerRow

Value = str | int | float | None

_READERS: dict[str, Callable[[LedgerRow], Value]] = {
    "request_id": lambda row: row.request_id,
    "at": lambda row: float(row.at),
    "day": lambda row: day_of(row.at).isoformat(),
    "tenant": lambda row: row.tenant,
    "key_id": lambda row: row.key_id,
    "model": lambda row: row.model,
    "dialect": lambda row: row.dialect,
    "profile": lambda row: row.profile,
    "scene": lambda row: row.scene,
    "prompt_name": lambda row: row.prompt_name,
    "prompt_version": lambda row: row.prompt_version,
    "mode": lambda row: str(row.classes.mode),
    "prompt": lambda row: row.classes.prompt,
    "computed": lambda row: row.classes.computed,
    "read": lambda row: row.classes.read,
    "written": lambda row: row.classes.write_total,
    "written_by_ttl": lambda row: _json(row.classes.written),
    "free": lambda row: row.classes.free,
    "output": lambda row: row.classes.output,
    "money_pico": lambda row: to_pico(row.money),
    "currency": lambda row: row.currency,
    "reason": lambda row: str(row.report.reason),
    "detail": lambda row: row.report.detail,
    "matched": lambda row: row.report.matched,
    "ideal": lambda row: row.report.ideal,
    "lost_tokens": lambda row: row.report.lost_tokens,
    "lost_pico": lambda row: to_pico(Decimal(repr(float(row.report.lost_money)))),
    "avoidable": lambda row: int(row.report.avoidable),
    "evidence": lambda row: str(row.report.evidence),
    "divergence": lambda row: None if row.report.divergence is None else _json(asdict(row.report.divergence)),
    "advice_en": lambda row: row.report.advice_en,
    "advice_zh": lambda row: row.report.advice_zh,
    "first_token": lambda row: row.first_token,
    "total": lambda row: float(row.total),
    "status": lambda row: row.status,
    "finish": lambda row: row.finish,
}

COLUMNS = tuple(_READERS)
"""Names in the order of `values`."""


def values(row: LedgerRow) -> tuple[Value, ...]:
    """What to store for `row`. RowRefused if a number is out of every range."""
    try:
        return tuple(_storable(read(row)) for read in _READERS.values())
    except (ValueError, OverflowError, ArithmeticError, orjson.JSONEncodeError) as error:
        raise RowRefused(f"request {row.request_id} can't be booked: {error}") from error


def to_pico(money: Decimal) -> int:
    """Money in pico-units."""
    return int((money / PICO).to_integral_value())


def from_pico(pico: int) -> Decimal:
    """Pico-units as money."""
    return Decimal(pico).scaleb(-12)


def _storable(value: Value) -> Value:
    """Text without what databases refuse: NUL and halves of surrogate pairs."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} has more than 64 bits")
    return value


def _json(content: dict[str, Any]) -> str:
    cleaned = {_storable(key): _storable(value) for key, value in content.items()}
    return orjson.dumps(cleaned, option=orjson.OPT_SORT_KEYS).decode()
