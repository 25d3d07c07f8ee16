"""Patterns over the turns of conversations."""

from __future__ import annotations

from random import Random
from typing import Any

import polars as pl
import pytest

from hotprefix.doctor.report.call import Call
from hotprefix.doctor.report.figures import Pattern, SessionFinding
from hotprefix.doctor.report.sessions import _suspects, findings, sessions_of
from tests.doctor.report.logs import call, table_of


def turns(count: int, **columns: Any) -> list[Call]:
    """A session, a turn a minute; a column is a value, or a function of the turn's number."""
    return [
        call(session="s", at=60.0 * turn)
        if not columns
        else call(
            session="s",
            at=60.0 * turn,
            **{name: value(turn) if callable(value) else value for name, value in columns.items()},
        )
        for turn in range(count)
    ]


def found(calls: list[Call]) -> list[SessionFinding]:
    sessions = sessions_of(table_of(*calls), top=10)
    assert sessions is not None
    return list(sessions.findings)


def test_reads_that_never_grow() -> None:
    # The case of T-B8: cached stays 6,612 for ten turns while the prompt grows.
    (one,) = found(turns(10, prompt=lambda turn: 7000 + 500 * turn, read=6612))
    assert (one.pattern, one.at, one.turns) == (Pattern.FROZEN_READ, 6612, 10)
    assert one.lost == sum(7000 + 500 * turn - 6612 for turn in range(9))


@pytest.mark.parametrize(
    "columns",
    [
        {"prompt": lambda turn: 7000 + 500 * turn, "read": lambda turn: 6500 + 500 * turn},
        {"prompt": lambda turn: 7000 + 10 * turn, "read": 6912},
        {"prompt": lambda turn: 7000 + 500 * turn, "read": 0},
        {"prompt": lambda turn: 7000 + 500 * turn, "read": None},
        {"prompt": lambda turn: 9000 - 500 * turn, "read": 4000},
    ],
    ids=["grows along", "grows by less than a step", "reads nothing", "tells nothing", "shrinks"],
)
def test_what_is_not_frozen(columns: dict[str, Any]) -> None:
    assert found(turns(10, **columns)) == []


def test_a_few_turns_are_no_pattern() -> None:
    assert found(turns(4, prompt=lambda turn: 7000 + 500 * turn, read=6612)) == []


def test_writes_that_nobody_reads() -> None:
    (one,) = found(turns(4, prompt=2000, read=0, written=lambda turn: 1900 if turn else 0))
    assert (one.pattern, one.turns, one.lost) == (Pattern.WRITE_ONLY, 3, 5700)
    assert found(turns(4, prompt=2000, read=lambda turn: 5 if turn == 3 else 0, written=1900)) == []


def test_tools_that_flip_every_five_minutes() -> None:
    # The case of B2: a server reconnects and its tools move to the end, on turns 5, 10 and 15.
    (one,) = found(
        turns(
            20, prompt=5000, read=lambda turn: 0 if turn % 5 == 0 else 4900, tools_print=lambda t: t // 5 % 2
        )
    )
    assert (one.pattern, one.changes, one.every) == (Pattern.TOOLS_FLIP, 3, 300.0)
    assert one.lost == 3 * 5000


def test_two_clients_that_take_turns_in_one_session() -> None:
    patterns = {
        one.pattern: one.changes for one in found(turns(6, prompt=900, read=0, system_print=lambda t: t % 2))
    }
    assert patterns == {Pattern.SYSTEM_FLIP: 5}
    assert found(turns(6, prompt=900, read=0, system_print=lambda turn: turn // 3)) == [], "changed once"


def test_the_first_look_at_sessions_overlooks_nothing() -> None:
    """Most sessions are dismissed by sums; those that are not are as many as a look at every one finds."""
    random, calls = Random(3), []
    for session in range(400):
        reads, grows = random.choice([[0], [None], [0, 7], [2048], [2048, 2304]]), random.choice([0, 300])
        models = random.choice([["a"], ["a", "b"], [None, "a"]])
        for turn in range(random.randint(1, 9)):
            calls.append(
                call(
                    session=str(session),
                    at=float(turn),
                    prompt=random.choice([3000, 3000, 3000, None]) and 3000 + grows * turn,
                    read=random.choice(reads),
                    written=random.choice([None, 0, 900]),
                    model=random.choice(models),
                    tools_print=random.choice([None, 1, 1, 1, 2]),
                )
            )
    table = table_of(*calls).with_columns(pl.col("tenant").fill_null("")).collect()
    every = pl.DataFrame({"session": table["session"].unique(), "tenant": "", "is_suspect": True})
    expected = [
        one for session in _suspects(table.lazy(), every) if len(session) > 1 for one in findings(session)
    ]
    sessions = sessions_of(table.lazy(), top=10_000)
    assert sessions is not None
    assert {Pattern.FROZEN_READ, Pattern.WRITE_ONLY, Pattern.TOOLS_FLIP} <= set(sessions.totals)
    assert sorted(sessions.findings, key=repr) == sorted(expected, key=repr)


def test_order_is_that_of_time_and_tenants_are_apart() -> None:
    calls = turns(10, prompt=lambda turn: 7000 + 500 * turn, read=6612)
    mixed = [
        *reversed(calls),
        *(call(session="s", tenant="other", at=1.0, prompt=1, read=0) for _ in range(3)),
    ]
    sessions = sessions_of(table_of(*mixed), top=10)
    assert sessions is not None
    assert sessions.count == 2
    assert [one.tenant for one in sessions.findings] == [""]
    assert sessions_of(table_of(call(prompt=1)), top=1) is None
