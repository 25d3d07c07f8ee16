"""Times to the first token: of hits against misses, and by how much of the prompt was read."""

from __future__ import annotations

import polars as pl

from hotprefix.doctor.report.figures import Latency, Spread
from hotprefix.doctor.report.sums import spread_expressions, spread_of

_SHARES = (
    (0.25, "≤ 25 %"), (0.50, "25–50 %"), (0.75, "50–75 %"), (0.95, "75–95 %"), (1.0, "> 95 %"),
)  # fmt: skip
_NOTHING = "0 %"
_CURVE = (1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99)


def latency_of(calls: pl.LazyFrame) -> Latency:
    """Only calls count that tell their time, their prompt and what was read of it."""
    told = calls.filter(
        pl.col("first_token").is_not_null() & pl.col("read").is_not_null() & (pl.col("prompt") > 0)
    )
    sides = _spreads(told, pl.when(pl.col("read") > 0).then(pl.lit("hit")).otherwise(pl.lit("miss")))
    shares = _spreads(told, _share())
    order = (_NOTHING, *(name for _, name in _SHARES))
    return Latency(
        sides.get("hit"),
        sides.get("miss"),
        tuple((name, shares[name]) for name in order if name in shares),
        _CURVE,
        _curves(told),
    )


def _share() -> pl.Expr:
    share = pl.col("read") / pl.col("prompt")
    named: pl.Expr = pl.lit(_SHARES[-1][1])
    for limit, name in reversed(_SHARES[:-1]):
        named = pl.when(share <= limit).then(pl.lit(name)).otherwise(named)
    return pl.when(pl.col("read") == 0).then(pl.lit(_NOTHING)).otherwise(named)


def _spreads(calls: pl.LazyFrame, key: pl.Expr) -> dict[str, Spread]:
    found = (
        calls.group_by(key.alias("key")).agg(*spread_expressions("first_token")).collect(engine="streaming")
    )
    spreads = {row["key"]: spread_of(row, "first_token") for row in found.iter_rows(named=True)}
    return {key: spread for key, spread in spreads.items() if spread is not None}


def _curves(calls: pl.LazyFrame) -> dict[str, tuple[float, ...]]:
    key = pl.when(pl.col("read") > 0).then(pl.lit("hit")).otherwise(pl.lit("miss")).alias("key")
    points = [pl.col("first_token").quantile(p / 100, "linear").alias(f"p{p}") for p in _CURVE]
    found = calls.group_by(key).agg(*points).collect(engine="streaming")
    return {row["key"]: tuple(row[f"p{p}"] for p in _CURVE) for row in found.iter_rows(named=True)}
