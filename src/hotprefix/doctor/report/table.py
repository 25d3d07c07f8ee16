"""All calls of all logs as one table on disk, so that memory does not grow with the logs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from hotprefix.doctor.report.call import Call
from hotprefix.doctor.report.columns import SCHEMA, aligned, frame_of
from hotprefix.doctor.report.trouble import Trouble, Troubles

_CHUNK = 20_000
_IDENTITY = ("source", "request_id", "at", "prompt", "read", "output")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which calls count: from `since` on and before `until`, in Unix seconds, of these tenants and scenes.
    Empty means all."""

    since: float | None = None
    until: float | None = None
    tenants: tuple[str, ...] = ()
    scenes: tuple[str, ...] = ()

    @property
    def needs_time(self) -> bool:
        """Whether a call without a time can't be judged."""
        return self.since is not None or self.until is not None

    def expression(self) -> pl.Expr:
        """The choice on a table of calls."""
        chosen = pl.lit(True)
        if self.since is not None:
            chosen &= pl.col("at") >= self.since
        if self.until is not None:
            chosen &= pl.col("at") < self.until
        if self.tenants:
            chosen &= pl.col("tenant").is_in(self.tenants)
        if self.scenes:
            chosen &= pl.col("scene").is_in(self.scenes)
        return chosen.fill_null(False)

    def takes(self, call: Call) -> bool:
        """The choice on one call."""
        if self.needs_time and call.at is None:
            return False
        if self.since is not None and call.at is not None and call.at < self.since:
            return False
        if self.until is not None and call.at is not None and call.at >= self.until:
            return False
        if self.tenants and call.tenant not in self.tenants:
            return False
        return not self.scenes or call.scene in self.scenes


class CallTable:
    """Takes calls one by one, each changed by `change` before, or in frames; `table` is what was taken."""

    def __init__(
        self,
        folder: Path,
        choice: Choice,
        troubles: Troubles,
        change: Callable[[Call], Call] | None = None,
    ) -> None:
        self._change = change
        self._folder = folder
        self._choice = choice
        self._troubles = troubles
        self._waiting: list[Call] = []
        self._files = 0

    def add(self, call: Call) -> None:
        """Take a call that the choice has let through."""
        self._waiting.append(call if self._change is None else self._change(call))
        if len(self._waiting) >= _CHUNK:
            self._flush()

    def add_frames(self, frames: Iterable[pl.DataFrame]) -> None:
        """Take aligned tables; the choice is made here."""
        for frame in frames:
            self._note_untimed(frame.lazy())
            self._write(frame.filter(self._choice.expression()))

    def add_lazy(self, calls: pl.LazyFrame) -> None:
        """Take a table that may be larger than memory; the choice is made here."""
        known = calls.collect_schema()
        whole = calls.select(
            (pl.col(name) if name in known else pl.lit(None)).cast(kind).alias(name)
            for name, kind in SCHEMA.items()
        )
        self._note_untimed(whole)
        whole.filter(self._choice.expression()).sink_parquet(self._next_file())

    def table(self) -> pl.LazyFrame:
        """Everything taken. A call that was met twice, with the same id, time and counts, is there once."""
        self._flush()
        if not self._files:
            self._write(frame_of([]), even_empty=True)
        calls = pl.scan_parquet(self._folder / "*.parquet")
        return self._without_outer_spans(self._without_events_of_spans(self._without_repeats(calls)))

    def _without_repeats(self, calls: pl.LazyFrame) -> pl.LazyFrame:
        named = calls.filter(pl.col("request_id").is_not_null() & pl.col("at").is_not_null())
        prints = named.select(print=pl.struct(_IDENTITY).hash(0))
        distinct = prints.select(pl.col("print").n_unique()).collect(engine="streaming").item()
        if distinct == _height(named):
            return calls
        kept = named.unique(subset=list(_IDENTITY), keep="any")
        repeated = _height(named) - _height(kept)
        self._troubles.add(Trouble.REPEATED, count=repeated)
        rest = calls.filter(pl.col("request_id").is_null() | pl.col("at").is_null())
        return pl.concat([rest, kept])

    def _without_events_of_spans(self, calls: pl.LazyFrame) -> pl.LazyFrame:
        """A span and an event within it may tell of the same call; the span also knows how long it took."""
        spans = calls.filter(pl.col("span_print").is_not_null()).select(parent_print="span_print").unique()
        events = pl.col("span_print").is_null() & pl.col("parent_print").is_not_null()
        count = _height(calls.filter(events).join(spans, on="parent_print", how="semi"))
        if not count:
            return calls
        self._troubles.add(Trouble.EVENT_OF_SPAN, count=count)
        others = calls.filter(~events)
        kept = calls.filter(events).join(spans, on="parent_print", how="anti", nulls_equal=False)
        return pl.concat([others, kept])

    def _without_outer_spans(self, calls: pl.LazyFrame) -> pl.LazyFrame:
        """Two instrumentations of a request give a span within a span; the inner one is nearer the wire."""
        parents = (
            calls.filter(pl.col("parent_print").is_not_null() & pl.col("span_print").is_not_null())
            .select(span_print="parent_print")
            .unique()
        )
        outer = calls.join(parents, on="span_print", how="semi")
        count = _height(outer)
        if not count:
            return calls
        self._troubles.add(Trouble.NESTED_SPAN, count=count)
        return calls.join(parents, on="span_print", how="anti", nulls_equal=False)

    def _note_untimed(self, calls: pl.LazyFrame) -> None:
        if self._choice.needs_time and (count := _height(calls.filter(pl.col("at").is_null()))):
            self._troubles.add(Trouble.NO_TIME, count=count)

    def _flush(self) -> None:
        if self._waiting:
            self._write(frame_of(self._waiting))
            self._waiting.clear()

    def _write(self, frame: pl.DataFrame, *, even_empty: bool = False) -> None:
        if frame.height or even_empty:
            aligned(frame).write_parquet(self._next_file(), compression="lz4")

    def _next_file(self) -> Path:
        self._files += 1
        return self._folder / f"{self._files:08}.parquet"


def _height(calls: pl.LazyFrame) -> int:
    return int(calls.select(pl.len()).collect(engine="streaming").item())
