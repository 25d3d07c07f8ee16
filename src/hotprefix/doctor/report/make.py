"""From logs to a report."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from hotprefix.doctor.rendering import Renderer
from hotprefix.doctor.report.bodies import BodySpool
from hotprefix.doctor.report.comparing import Comparer, with_reasons
from hotprefix.doctor.report.figures import Compared, Dimension, Note, Report, Sums
from hotprefix.doctor.report.gap import gap_of
from hotprefix.doctor.report.latency import latency_of
from hotprefix.doctor.report.offenders import offenders_of
from hotprefix.doctor.report.pricing import Pricing
from hotprefix.doctor.report.reading import LogReader
from hotprefix.doctor.report.redaction import redacted
from hotprefix.doctor.report.sessions import sessions_of
from hotprefix.doctor.report.sums import KEYS, sums_by, total_of
from hotprefix.doctor.report.table import CallTable, Choice
from hotprefix.doctor.report.timeline import timeline_of
from hotprefix.doctor.report.trouble import Trouble, Troubles
from hotprefix.doctor.text_model import TextModel
from hotprefix.profiles.loader import ProfileBook


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a report shall say: of which calls, by which dimensions (empty: all that the logs tell), the `top`
    entries of every list, prices of the named `profile`, at most `compare` prompts compared, and whether
    the prompts' words are kept out of it. `texts` says how compared prompts are tokenised."""

    choice: Choice = field(default_factory=Choice)
    by: tuple[Dimension, ...] = ()
    top: int = 10
    profile: str | None = None
    compare: int = 5_000
    redact: bool = False
    texts: TextModel = field(default_factory=TextModel)


def make_report(logs: Sequence[str], book: ProfileBook, wishes: Wishes, wall: float) -> Report:
    """Read `logs` and count. Works in a temporary folder; `wall` is the time now, in Unix seconds.

    Raises UnreadableFile, LedgerError or UnknownProfile.
    """
    troubles = Troubles()
    pricing = Pricing(book, troubles, wishes.profile)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hotprefix-report-")))
        (folder / "calls").mkdir()
        bodies = stack.enter_context(BodySpool(folder / "bodies")) if wishes.compare else None
        change = redacted if wishes.redact else None
        table = CallTable(folder / "calls", wishes.choice, troubles, change)
        reader = LogReader(table, folder, wishes.choice, pricing, troubles, bodies)
        for log in logs:
            reader.read(log)
        calls, compared = table.table(), Compared(0, 0)
        if bodies is not None and len(bodies):
            renderer = Renderer(wishes.texts, book, wishes.profile)
            comparer = Comparer(renderer, pricing, troubles, wall)
            found, compared = comparer.judged(bodies, wishes.compare)
            calls = _on_disk(with_reasons(calls, found), folder / "judged.parquet")
        return _counted(logs, calls, wishes, compared, troubles)


def _on_disk(calls: pl.LazyFrame, place: Path) -> pl.LazyFrame:
    calls.sink_parquet(place)
    return pl.scan_parquet(place)


def _counted(
    logs: Sequence[str], calls: pl.LazyFrame, wishes: Wishes, compared: Compared, troubles: Troubles
) -> Report:
    total = total_of(calls)
    groups: dict[Dimension, tuple[Sums, ...]] = {}
    hidden: dict[Dimension, int] = {}
    for dimension in wishes.by or tuple(Dimension):
        found = sums_by(calls, KEYS[dimension])
        if wishes.by or _says_something(dimension, found):
            groups[dimension] = tuple(found[: wishes.top])
            hidden[dimension] = max(0, len(found) - wishes.top)
    ends = calls.select(since=pl.col("at").min(), until=pl.col("at").max()).collect(engine="streaming")
    _note_kinds(calls, troubles)
    return Report(
        files=tuple(logs),
        since=ends["since"][0],
        until=ends["until"][0],
        total=total,
        groups=groups,
        hidden=hidden,
        latency=latency_of(calls),
        timeline=timeline_of(calls),
        gap=gap_of(calls, total),
        offenders=offenders_of(calls, wishes.top),
        sessions=sessions_of(calls, wishes.top),
        compared=compared,
        notes=_notes(troubles),
    )


def _says_something(dimension: Dimension, found: Sequence[Sums]) -> bool:
    if dimension is Dimension.SOURCE:
        return len(found) > 1
    return any(sums.key for sums in found)


def _note_kinds(calls: pl.LazyFrame, troubles: Troubles) -> None:
    """The same request in logs of two kinds counts twice, and whoever gave both should know."""
    if int(calls.select(pl.col("source").n_unique()).collect(engine="streaming").item()) < 2:
        return
    twice = (
        calls.filter(pl.col("request_id").is_not_null())
        .group_by("request_id")
        .agg(pl.col("source").n_unique().alias("kinds"))
        .filter(pl.col("kinds") > 1)
    )
    count = int(twice.select(pl.len()).collect(engine="streaming").item())
    if count:
        troubles.add(Trouble.TWO_KINDS, count=count)


def _notes(troubles: Troubles) -> tuple[Note, ...]:
    return tuple(
        Note(kind.value, subject, count, troubles.places.get((kind, subject), ""))
        for (kind, subject), count in sorted(troubles.counts.items(), key=lambda item: (item[0][0], -item[1]))
    )
