"""Calls as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import polars as pl

from hotprefix.doctor.report.call import COLUMNS, Call

_COUNTS = ("prompt", "read", "written", "free", "output", "money", "lost", "lost_money", "body")
_TIMES = ("at", "first_token", "total")
_PRINTS = ("tools_print", "system_print", "span_print", "parent_print")


def _type_of(name: str) -> type[pl.DataType]:
    if name in _COUNTS:
        return pl.Int64
    if name in _TIMES:
        return pl.Float64
    if name in _PRINTS:
        return pl.UInt64
    return pl.Boolean if name == "avoidable" else pl.String


SCHEMA: dict[str, type[pl.DataType]] = {name: _type_of(name) for name in COLUMNS}
"""The type of every column."""

_values = attrgetter(*COLUMNS)


def frame_of(calls: Sequence[Call]) -> pl.DataFrame:
    """Calls as a table."""
    columns = zip(*map(_values, calls), strict=True) if calls else ((),) * len(COLUMNS)
    return pl.DataFrame(
        {
            name: pl.Series(name, values, dtype=SCHEMA[name])
            for name, values in zip(COLUMNS, columns, strict=True)
        }
    )


def aligned(frame: pl.DataFrame) -> pl.DataFrame:
    """With every column, in order and of its type; what is missing is null."""
    known = set(frame.columns)
    return frame.select(
        (pl.col(name) if name in known else pl.lit(None)).cast(kind).alias(name)
        for name, kind in SCHEMA.items()
    )
