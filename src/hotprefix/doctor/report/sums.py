"""Sums over calls, in whole and by group."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl

from hotprefix.doctor.report.figures import PERCENTILES, Dimension, Money, Spread, Sums
from hotprefix.ledger.columns import from_pico

_SPLIT = 1_000_000
_COUNTS = ("prompt", "read", "written", "free", "output", "lost")
_NUMBERS = (
    "requests", "measured", "hits", "measured_prompt", "judged", "judged_prompt", "judged_read", "priced",
)  # fmt: skip
_AMOUNTS = ("money", "lost_money", "avoidable_money")
_PROMPT_LABEL = (
    pl.when(pl.col("prompt_version").is_not_null())
    .then(pl.concat_str("prompt_name", "prompt_version", separator="@"))
    .otherwise(pl.col("prompt_name"))
)
KEYS: dict[Dimension, pl.Expr] = {
    Dimension.SCENE: pl.col("scene"),
    Dimension.PROMPT: _PROMPT_LABEL,
    Dimension.TENANT: pl.col("tenant"),
    Dimension.MODEL: pl.col("model"),
    Dimension.REASON: pl.col("reason"),
    Dimension.SOURCE: pl.col("source"),
}
EVERYTHING = pl.lit("")


def sums_by(calls: pl.LazyFrame, key: pl.Expr) -> list[Sums]:
    """One entry for each value of `key`, the one with most prompt tokens first."""
    keyed = calls.with_columns(key.cast(pl.String).fill_null("").alias("key"))
    counts = keyed.group_by("key").agg(*_expressions()).collect(engine="streaming")
    money = _money_by(keyed)
    found = [_sums(row, money[row["key"]]) for row in counts.iter_rows(named=True)]
    return sorted(found, key=lambda sums: (-(sums.prompt or 0), -sums.requests, sums.key))


def total_of(calls: pl.LazyFrame) -> Sums:
    """Sums over all calls."""
    found = sums_by(calls, EVERYTHING)
    return found[0] if found else _sums(dict.fromkeys(_names(), 0) | {"key": ""}, {})


def spread_expressions(column: str) -> list[pl.Expr]:
    """What `spread_of` needs, of a column of seconds."""
    values = pl.col(column)
    return [
        values.count().alias(f"{column}_count"),
        values.mean().alias(f"{column}_mean"),
        *(values.quantile(p / 100, "linear").alias(f"{column}_p{p}") for p in PERCENTILES),
    ]


def spread_of(row: dict[str, Any], column: str) -> Spread | None:
    """From a row of an aggregation; None without values."""
    count = row.get(f"{column}_count") or 0
    if not count:
        return None
    return Spread(count, row[f"{column}_mean"], {p: row[f"{column}_p{p}"] for p in PERCENTILES})


def money_sums(name: str) -> list[pl.Expr]:
    """The sum of pico-units in two parts, for 64 bits end at nine million of a currency."""
    column = pl.col(name)
    return [
        (column // _SPLIT).sum().alias(f"{name}_high"),
        (column % _SPLIT).sum().alias(f"{name}_low"),
        column.count().alias(f"{name}_count"),
    ]


def money_of(row: dict[str, Any], name: str) -> Money | None:
    """From a row of an aggregation; None if no call has it."""
    if not row[f"{name}_count"] or row["currency"] is None:
        return None
    return Money(row["currency"], from_pico(row[f"{name}_high"] * _SPLIT + row[f"{name}_low"]))


def _expressions() -> list[pl.Expr]:
    measured = pl.col("read").is_not_null() & pl.col("prompt").is_not_null()
    judged = pl.col("reason").is_not_null() & pl.col("lost").is_not_null() & measured
    return [
        pl.len().alias("requests"),
        measured.sum().alias("measured"),
        (measured & (pl.col("read") > 0)).sum().alias("hits"),
        pl.col("prompt").filter(measured).sum().alias("measured_prompt"),
        pl.col("read").filter(measured).sum().alias("measured_read"),
        judged.sum().alias("judged"),
        pl.col("prompt").filter(judged).sum().alias("judged_prompt"),
        pl.col("read").filter(judged).sum().alias("judged_read"),
        pl.col("lost").filter(judged & pl.col("avoidable")).sum().alias("avoidable"),
        pl.col("money").count().alias("priced"),
        _computed().filter(measured).sum().alias("computed"),
        *(pl.col(name).sum().alias(name) for name in _COUNTS),
        *(pl.col(name).count().alias(f"{name}_told") for name in _COUNTS),
        *spread_expressions("first_token"),
    ]


def _computed() -> pl.Expr:
    rest = (pl.col(name).fill_null(0) for name in ("read", "written", "free"))
    return pl.col("prompt") - sum(rest, start=pl.lit(0))


def _money_by(keyed: pl.LazyFrame) -> dict[str, dict[str, list[Money]]]:
    avoidable = pl.when("avoidable").then(pl.col("lost_money")).alias("avoidable_money")
    found = (
        keyed.filter(pl.col("currency").is_not_null())
        .with_columns(avoidable)
        .group_by("key", "currency")
        .agg(e for name in _AMOUNTS for e in money_sums(name))
        .sort("key", "currency")
        .collect(engine="streaming")
    )
    money: dict[str, dict[str, list[Money]]] = defaultdict(lambda: defaultdict(list))
    for row in found.iter_rows(named=True):
        for name in _AMOUNTS:
            if (amount := money_of(row, name)) is not None:
                money[row["key"]][name].append(amount)
    return money


def _names() -> list[str]:
    told = (f"{name}_told" for name in _COUNTS)
    return [*_NUMBERS, "measured_read", "avoidable", "computed", *_COUNTS, *told]


def _sums(row: dict[str, Any], money: dict[str, list[Money]]) -> Sums:
    told = {name: int(row[name]) if row[f"{name}_told"] else None for name in _COUNTS}
    told |= {
        "read": int(row["measured_read"]) if row["measured"] else None,
        "computed": int(row["computed"]) if row["measured"] else None,
        "avoidable": int(row["avoidable"]) if row["judged"] else None,
    }
    numbers: dict[str, Any] = {name: int(row[name]) for name in _NUMBERS} | told
    amounts: dict[str, Any] = {name: tuple(money.get(name, ())) for name in _AMOUNTS}
    return Sums(key=row["key"], first_token=spread_of(row, "first_token"), **numbers, **amounts)
