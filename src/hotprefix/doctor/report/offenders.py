"""The prompts that waste most."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import polars as pl

from hotprefix.doctor.report.figures import Dimension, Money, Offender
from hotprefix.doctor.report.sums import KEYS, money_of, money_sums

_KEY = ("label", "reason")
_LABEL = pl.coalesce(KEYS[Dimension.PROMPT], "words", "scene", pl.lit("")).alias("label")


def offenders_of(calls: pl.LazyFrame, top: int) -> tuple[Offender, ...]:
    """By tokens lost; by tokens computed if no call has a reason. A prompt is known by its name, else by its
    first words, else by its scene."""
    named = calls.with_columns(_LABEL)
    judged = named.filter(pl.col("reason").is_not_null() & (pl.col("lost") > 0))
    found = _ranked(judged, pl.col("lost"), top)
    if found.is_empty():
        return _unjudged(named, top)
    examples = _examples(judged, found)
    money = _money(judged, found)
    return tuple(
        Offender(
            label=row["label"],
            reason=row["reason"],
            **examples[row["label"], row["reason"]],
            requests=row["requests"],
            tokens=row["tokens"],
            money=tuple(money[row["label"], row["reason"]]),
        )
        for row in found.iter_rows(named=True)
    )


def _ranked(calls: pl.LazyFrame, tokens: pl.Expr, top: int) -> pl.DataFrame:
    return (
        calls.group_by(*_KEY)
        .agg(pl.len().alias("requests"), tokens.sum().alias("tokens"), tokens.max().alias("most"))
        .sort("tokens", *_KEY, descending=[True, False, False])
        .head(top)
        .collect(engine="streaming")
    )


def _unjudged(named: pl.LazyFrame, top: int) -> tuple[Offender, ...]:
    computed = pl.col("prompt") - pl.col("read")
    told = named.filter((computed > 0) & (pl.col("label") != "")).with_columns(
        pl.lit(None, pl.String).alias("reason")
    )
    return tuple(
        Offender(row["label"], None, None, row["requests"], row["tokens"], (), None, None, None)
        for row in _ranked(told, computed, top).iter_rows(named=True)
    )


def _examples(judged: pl.LazyFrame, found: pl.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Detail, path and advice of the call of each group that lost most; of equals, the first by its words."""
    told = ("detail", "path", "advice_en", "advice_zh")
    worst = (
        judged.join(found.lazy().select(*_KEY, lost="most"), on=[*_KEY, "lost"], how="semi")
        .select(*_KEY, *told)
        .unique()
        .sort(*_KEY, *told)
        .unique(subset=list(_KEY), keep="first", maintain_order=True)
        .collect()
    )
    return {
        (row["label"], row["reason"]): {name: row[name] for name in told}
        for row in worst.iter_rows(named=True)
    }


def _money(judged: pl.LazyFrame, found: pl.DataFrame) -> dict[tuple[str, str], list[Money]]:
    sums = (
        judged.join(found.lazy().select(*_KEY), on=list(_KEY), how="semi")
        .filter(pl.col("currency").is_not_null())
        .group_by(*_KEY, "currency")
        .agg(*money_sums("lost_money"))
        .sort("currency")
        .collect(engine="streaming")
    )
    money: dict[tuple[str, str], list[Money]] = defaultdict(list)
    for row in sums.iter_rows(named=True):
        if (amount := money_of(row, "lost_money")) is not None:
            money[row["label"], row["reason"]].append(amount)
    return money
