"""Figures over time."""

from __future__ import annotations

import polars as pl

from hotprefix.doctor.report.figures import Timeline
from hotprefix.doctor.report.sums import sums_by

_WIDTHS = (1, 10, 60, 300, 900, 3600, 4 * 3600, 86_400, 7 * 86_400, 28 * 86_400)
_MOST = 72
"""Spans that a plot has room for."""


def timeline_of(calls: pl.LazyFrame) -> Timeline | None:
    """In spans of a usual width, so that there are at most 72; None without times."""
    timed = calls.filter(pl.col("at").is_not_null())
    ends = timed.select(first=pl.col("at").min(), last=pl.col("at").max()).collect(engine="streaming")
    first, last = ends.row(0)
    if first is None:
        return None
    width = next((w for w in _WIDTHS if (last - first) / w < _MOST), _WIDTHS[-1])
    start = (pl.col("at") // width).cast(pl.Int64) * width
    spans = sorted(sums_by(timed, start), key=lambda sums: int(sums.key))
    return Timeline(width, tuple(spans))
