"""Totals over the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from hotprefix.ledger.columns import Value, from_pico
from hotprefix.ledger.store import LedgerStore

HIT_RATE_FORMULA = (
    "hit rate = read / prompt, in tokens; prompt = computed + read + written + free. "
    "requests hit = requests with read > 0 / requests."
)

_SPLIT = 1_000_000


class Dimension(StrEnum):
    """What totals are grouped by."""

    TENANT = "tenant"
    MODEL = "model"
    SCENE = "scene"
    PROMPT = "prompt"
    REASON = "reason"
    DAY = "day"


_KEYS = {
    Dimension.TENANT: "tenant",
    Dimension.MODEL: "model",
    Dimension.SCENE: "scene",
    Dimension.PROMPT: "CASE WHEN prompt_version = '' THEN prompt_name "
    "ELSE prompt_name || '@' || prompt_version END",
    Dimension.REASON: "reason",
    Dimension.DAY: "day",
}


@dataclass(frozen=True, slots=True)
class Span:
    """From `since` on and before `until`, in Unix seconds; None is open."""

    since: float | None = None
    until: float | None = None

    def where(self) -> tuple[str, tuple[Value, ...]]:
        """A WHERE clause, perhaps empty, and its parameters."""
        bounds = [("at >= ?", self.since), ("at < ?", self.until)]
        used = [(text, value) for text, value in bounds if value is not None]
        clause = " AND ".join(text for text, _ in used)
        return (f"WHERE {clause}" if clause else ""), tuple(value for _, value in used)


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over requests with the same `key` and currency. `first_token` is the mean, in seconds."""

    key: str
    currency: str
    requests: int
    hits: int
    prompt: int
    computed: int
    read: int
    written: int
    free: int
    output: int
    lost_tokens: int
    money: Decimal
    lost_money: Decimal
    first_token: float | None

    @property
    def hit_rate(self) -> float:
        """Part of the prompt tokens that came from the cache; 0 without tokens."""
        return self.read / self.prompt if self.prompt else 0.0

    @property
    def request_hit_rate(self) -> float:
        """Part of the requests that read anything from the cache; 0 without requests."""
        return self.hits / self.requests if self.requests else 0.0


EVERYTHING = Span()


def totals_by(store: LedgerStore, dimension: Dimension, span: Span = EVERYTHING) -> list[Totals]:
    """One entry for each value of `dimension` and currency, sorted by value."""
    return _select(store, _KEYS[dimension], span)


def totals(store: LedgerStore, span: Span = EVERYTHING) -> list[Totals]:
    """One entry for each currency: money of two currencies has no sum."""
    return _select(store, "''", span)


_COUNTS = ("prompt", "computed", "read", "written", "free", "output", "lost_tokens")


def _select(store: LedgerStore, key: str, span: Span) -> list[Totals]:
    where, parameters = span.where()
    sums = ", ".join(f"SUM({name})" for name in _COUNTS)
    sql = (
        f"SELECT {key}, currency, COUNT(*), SUM(CASE WHEN read > 0 THEN 1 ELSE 0 END), {sums}, "
        f"{_pico_sum('money_pico')}, {_pico_sum('lost_pico')}, AVG(first_token) "
        f"FROM ledger_request {where} GROUP BY 1, 2"
    )
    found = [_totals(row) for row in store.query(sql, parameters)]
    return sorted(found, key=lambda entry: (entry.key, entry.currency))


def _pico_sum(column: str) -> str:
    # In two parts, for SQLite's sum has 64 bits and nine million of a currency would be too much.
    return f"SUM({column} / {_SPLIT}), SUM({column} - {column} / {_SPLIT} * {_SPLIT})"


def _totals(row: Sequence[Any]) -> Totals:
    key, currency, *numbers, first_token = row
    requests, hits, *counts, money, money_rest, lost, lost_rest = _integers(numbers)
    return Totals(
        key=str(key),
        currency=str(currency),
        requests=requests,
        hits=hits,
        **dict(zip(_COUNTS, counts, strict=True)),
        money=from_pico(money * _SPLIT + money_rest),
        lost_money=from_pico(lost * _SPLIT + lost_rest),
        first_token=None if first_token is None else float(first_token),
    )


def _integers(numbers: Iterable[Any]) -> list[int]:
    return [int(number) for number in numbers]
