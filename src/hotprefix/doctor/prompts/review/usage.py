"""What logs say of the versions of prompts: how often they were sent, and how their hit rate moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class VersionUse:
    """`recent` and `before` are hit rates in tokens of the last days and of the time before; None if too
    few requests tell."""

    requests: int
    last: float | None
    recent: float | None
    before: float | None

    @property
    def fall(self) -> float | None:
        """By how much the rate fell; None if it can't be told."""
        return None if self.recent is None or self.before is None else self.before - self.recent


def uses_of(calls: pl.DataFrame, recent_days: int, fewest: int = 30) -> Mapping[tuple[str, str], VersionUse]:
    """By name and version. What is recent is counted back from the last request of all."""
    if not calls.height:
        return {}
    newest = calls["at"].max()
    since = newest - recent_days * _DAY if isinstance(newest, float) else None
    is_recent = pl.lit(False) if since is None else (pl.col("at") > since).fill_null(False)
    told = pl.col("read").is_not_null() & pl.col("prompt").is_not_null()
    found = calls.group_by("prompt_name", pl.col("prompt_version").fill_null("")).agg(
        pl.len().alias("requests"),
        pl.col("at").max().alias("last"),
        *_rate("recent", told & is_recent, fewest),
        *_rate("before", told & ~is_recent, fewest),
    )
    return {
        (row["prompt_name"], row["prompt_version"]): VersionUse(
            row["requests"], row["last"], row["recent"], row["before"]
        )
        for row in found.iter_rows(named=True)
    }


def _rate(name: str, chosen: pl.Expr, fewest: int) -> list[pl.Expr]:
    read, prompt = (pl.col(column).filter(chosen).sum() for column in ("read", "prompt"))
    enough = (chosen.sum() >= fewest) & (prompt > 0)
    return [pl.when(enough).then(read / prompt).alias(name)]
