"""kill -9 in the middle: every acknowledged row is there, whole, once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.query import totals
from hotprefix.ledger.store import open_store
from tests.ledger.killed_writer import tokens
from tests.ledger.rows import row

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def writer(place: Path | str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.ledger.killed_writer", str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def acknowledged_before_kill(place: Path | str, flushes: int) -> int:
    with writer(place) as process:
        assert process.stdout is not None
        for _ in range(flushes):
            process.stdout.readline()
        process.kill()
        rest = process.stdout.read().splitlines()
    return int(rest[-1]) if rest else 20 * flushes


def test_acknowledged_rows_survive_kill_9(place: Path | str) -> None:
    acknowledged = acknowledged_before_kill(place, flushes=8)
    assert acknowledged >= 160
    with closing(open_store(place)) as store:
        numbers = sorted(int(key[0][4:]) for key in store.query("SELECT request_id FROM ledger_request"))
        # Rows on their way may be there too, but without a hole: they were stored in order.
        assert numbers == list(range(len(numbers)))
        assert len(numbers) >= acknowledged
        (sums,) = totals(store)
        expected = [tokens(number) for number in numbers]
        assert sums.prompt == sum(classes.prompt for classes in expected)
        assert sums.computed == sum(classes.computed for classes in expected)
        assert sums.read == sum(classes.read for classes in expected)
        assert sums.written == sum(classes.write_total for classes in expected)
        assert sums.output == sum(classes.output for classes in expected)


def test_after_the_crash_the_same_requests_are_not_counted_again(place: Path | str) -> None:
    acknowledged = acknowledged_before_kill(place, flushes=3)
    ledger = Ledger(store := open_store(place))
    with closing(ledger):
        before = totals(store)
        for number in range(acknowledged):
            ledger.record(row(number, classes=tokens(number)))
        ledger.flush()
        assert totals(store) == before
