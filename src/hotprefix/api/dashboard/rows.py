"""Rows of the ledger as the page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from hotprefix.api.dashboard.selection import Selection
from hotprefix.ledger.columns import COLUMNS, Value, from_pico, values
from hotprefix.ledger.row import LedgerRow
from hotprefix.ledger.store import LedgerStore

PAGE = 50
_BRIEF = (
    "request_id", "at", "tenant", "model", "dialect", "profile", "scene", "prompt_name", "prompt_version",
    "mode", "prompt", "computed", "read", "written", "free", "output", "currency", "reason", "detail",
    "lost_tokens", "avoidable", "first_token", "total", "status", "finish", "money_pico", "lost_pico",
)  # fmt: skip
_REST = ("key_id", "written_by_ttl", "matched", "ideal", "evidence", "divergence", "advice_en", "advice_zh")
_JSON = ("written_by_ttl", "divergence")
_MONEY = {"money_pico": "money", "lost_pico": "lost_money"}


def page_of(store: LedgerStore, chosen: Selection, before: tuple[float, str] | None) -> list[dict[str, Any]]:
    """The newest requests, at most `PAGE` of them, older than the one at `before` (time and id)."""
    where, parameters = chosen.where()
    if before is not None:
        where = (f"{where} AND " if where else "WHERE ") + "(at < ? OR (at = ? AND request_id < ?))"
        parameters = (*parameters, before[0], *before)
    order = f"ORDER BY at DESC, request_id DESC LIMIT {PAGE}"
    sql = f"SELECT {', '.join(_BRIEF)} FROM ledger_request {where} {order}"
    return [brief(dict(zip(_BRIEF, row, strict=True))) for row in store.query(sql, parameters)]


def found(store: LedgerStore, request_id: str) -> dict[str, Any] | None:
    """One request with everything that the ledger has of it."""
    sql = f"SELECT {', '.join(COLUMNS)} FROM ledger_request WHERE request_id = ?"
    row = next(iter(store.query(sql, (request_id,))), None)
    return None if row is None else whole(dict(zip(COLUMNS, row, strict=True)))


def columns_of(row: LedgerRow) -> dict[str, Value]:
    """A row as the database will have it. Raises `RowRefused`."""
    return dict(zip(COLUMNS, values(row), strict=True))


def brief(row: Mapping[str, Any]) -> dict[str, Any]:
    """A line of the list: figures and names, no word of the prompt. Money as text, for exactness."""
    shown = {name: row[name] for name in _BRIEF if name not in _MONEY}
    money = {new: format(from_pico(row[old]).normalize(), "f") for old, new in _MONEY.items()}
    return shown | money | {"avoidable": bool(row["avoidable"])}


def whole(row: Mapping[str, Any]) -> dict[str, Any]:
    """All of a row; the divergence may hold words."""
    rest = {name: row[name] for name in _REST if name not in _JSON}
    parsed = {name: None if row[name] is None else orjson.loads(row[name]) for name in _JSON}
    return brief(row) | rest | parsed
