"""Patterns over the turns of conversations: reads that freeze, writes nobody reads, prompts that flip."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import polars as pl

from hotprefix.doctor.report.figures import Pattern, SessionFinding, Sessions

_PARTITION = 1_000_000
_FROZEN_TURNS = 5
_FROZEN_GROWTH = 1_024
"""Tokens that a prompt must grow by while its reads stay the same: more than any vendor's step."""
_UNREAD_WRITES = 3
_FLIPS = 2
_KEY = ("session", "tenant")
_TURN = ("at", "prompt", "read", "written", "tools_print", "system_print", "model")
_FLIPPING = (
    (Pattern.TOOLS_FLIP, "tools_print"),
    (Pattern.SYSTEM_FLIP, "system_print"),
    (Pattern.MODEL_FLIP, "model"),
)


@dataclass(frozen=True, slots=True)
class _Session:
    """Turns in the order of time, as columns."""

    name: str
    tenant: str
    turns: dict[str, Sequence[Any]]

    def __len__(self) -> int:
        return len(self.turns["at"])

    def found(self, pattern: Pattern, turns: int, lost: int, **more: Any) -> SessionFinding:
        """A finding in this session."""
        model = next((name for name in self.turns["model"] if name), "")
        return SessionFinding(pattern, self.name, self.tenant, model, turns, lost, **more)


def sessions_of(calls: pl.LazyFrame, top: int) -> Sessions | None:
    """None if the logs know no sessions of more than one turn."""
    named = calls.filter(pl.col("session").is_not_null()).with_columns(pl.col("tenant").fill_null(""))
    count = int(named.select(pl.len()).collect(engine="streaming").item())
    parts = max(1, -(-count // _PARTITION))
    found: list[SessionFinding] = []
    sessions, totals = 0, Counter[Pattern]()
    for part in range(parts):
        own = named.filter(pl.col("session").hash(0) % parts == part)
        turned = _turned(own)
        sessions += turned.height
        for session in _suspects(own, turned):
            for finding in findings(session):
                totals[finding.pattern] += 1
                found.append(finding)
        found = _worst(found, top)
    return Sessions(sessions, tuple(found), dict(totals)) if sessions else None


def findings(session: _Session) -> Iterator[SessionFinding]:
    """Everything that goes wrong in one session."""
    yield from _frozen(session)
    yield from _write_only(session)
    for pattern, column in _FLIPPING:
        yield from _flips(session, pattern, column)


def _turned(named: pl.LazyFrame) -> pl.DataFrame:
    """Sessions of more than one turn, and whether they deserve a closer look."""
    return (
        named.group_by(*_KEY)
        .agg(pl.len().alias("turns"), _may_have_findings().alias("is_suspect"))
        .filter(pl.col("turns") > 1)
        .collect(engine="streaming")
    )


def _may_have_findings() -> pl.Expr:
    """What every finding takes, whatever the order of turns: most sessions need no closer look."""
    read, prompt = pl.col("read"), pl.col("prompt")
    is_read = read > 0
    frozen = (is_read.sum() >= read.filter(is_read).n_unique() + _FROZEN_TURNS - 1) & (
        prompt.max() - prompt.min() >= _FROZEN_GROWTH
    )
    only_written = ~(read.is_null() | is_read).any() & ((pl.col("written") > 0).sum() >= _UNREAD_WRITES)
    flipping = (pl.col(name).drop_nulls().n_unique() > 1 for _, name in _FLIPPING)
    return pl.any_horizontal(frozen, only_written, *flipping)


def _suspects(named: pl.LazyFrame, turned: pl.DataFrame) -> Iterator[_Session]:
    """With their turns in the order of time."""
    order = [pl.col("at"), pl.col("prompt"), pl.col("read"), pl.col("output")]
    grouped = (
        named.join(turned.lazy().filter("is_suspect"), on=_KEY, how="semi")
        .group_by(*_KEY)
        .agg(pl.col(_TURN).sort_by(order, nulls_last=True))
        .collect(engine="streaming")
    )
    for row in grouped.iter_rows(named=True):
        yield _Session(row["session"], row["tenant"], {name: row[name] for name in _TURN})


def _frozen(session: _Session) -> Iterator[SessionFinding]:
    """Reads that stay at one number of tokens while the prompt grows: the longest such run."""
    prompts, reads = session.turns["prompt"], session.turns["read"]
    best: tuple[int, int] | None = None
    start = 0
    for turn in range(1, len(session) + 1):
        if turn < len(session) and _goes_on(prompts, reads, turn):
            continue
        if _is_frozen(prompts, reads, start, turn) and (best is None or turn - start > best[1] - best[0]):
            best = start, turn
        start = turn
    if best is not None:
        at = reads[best[0]]
        # Each turn could have read the prompt of the one before.
        lost = sum(max(0, prompts[turn - 1] - at) for turn in range(best[0] + 1, best[1]))
        yield session.found(Pattern.FROZEN_READ, best[1] - best[0], lost, at=at)


def _goes_on(prompts: Sequence[Any], reads: Sequence[Any], turn: int) -> bool:
    if None in (prompts[turn], prompts[turn - 1], reads[turn]):
        return False
    return bool(reads[turn] == reads[turn - 1] and prompts[turn] >= prompts[turn - 1])


def _is_frozen(prompts: Sequence[Any], reads: Sequence[Any], start: int, end: int) -> bool:
    if end - start < _FROZEN_TURNS or not reads[start]:
        return False
    return bool(prompts[end - 1] - prompts[start] >= _FROZEN_GROWTH)


def _write_only(session: _Session) -> Iterator[SessionFinding]:
    reads, writes = session.turns["read"], session.turns["written"]
    if any(read is None or read > 0 for read in reads):
        return
    written = [tokens for tokens in writes if tokens]
    if len(written) >= _UNREAD_WRITES:
        yield session.found(Pattern.WRITE_ONLY, len(written), sum(written))


def _flips(session: _Session, pattern: Pattern, column: str) -> Iterator[SessionFinding]:
    known = [turn for turn, value in enumerate(session.turns[column]) if value is not None]
    values = session.turns[column]
    changed = [after for before, after in pairwise(known) if values[before] != values[after]]
    if len(changed) < _FLIPS:
        return
    times = [session.turns["at"][turn] for turn in changed]
    gaps = [after - before for before, after in pairwise(times) if before is not None and after is not None]
    prompts, reads = session.turns["prompt"], session.turns["read"]
    lost = sum(
        max(0, prompts[turn - 1] - reads[turn])
        for turn in changed
        if prompts[turn - 1] is not None and reads[turn] is not None
    )
    every = median(gaps) if gaps else None
    yield session.found(pattern, len(session), lost, changes=len(changed), every=every)


def _worst(found: list[SessionFinding], top: int) -> list[SessionFinding]:
    return sorted(found, key=lambda one: (-one.lost, one.pattern, one.session, one.tenant))[:top]
