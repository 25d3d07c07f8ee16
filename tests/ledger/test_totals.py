"""Totals are sums over distinct requests, whoever wrote them how often."""

from __future__ import annotations

import tempfile
import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.diagnosis.reason import Reason
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.query import Dimension, Span, Totals, totals, totals_by
from hotprefix.ledger.row import LedgerRow
from hotprefix.ledger.sqlite import SqliteStore
from hotprefix.ledger.store import LedgerStore
from hotprefix.modes.classes import Mode, TokenClasses
from tests.ledger.rows import REPORT, ROW, row

COUNTS = st.integers(0, 5000)
CLASSES = st.builds(
    TokenClasses,
    mode=st.sampled_from(Mode),
    computed=COUNTS,
    read=COUNTS,
    written=st.dictionaries(st.sampled_from(["5m", "1h"]), COUNTS),
    free=COUNTS,
    output=COUNTS,
)
ROWS = st.builds(
    replace,
    st.just(ROW),
    request_id=st.integers(0, 15).map(lambda number: f"req-{number}"),
    tenant=st.sampled_from(["acme", "", "租户"]),
    currency=st.sampled_from(["CNY", "USD"]),
    classes=CLASSES,
    money=st.integers(0, 10**15).map(lambda pico: Decimal(pico).scaleb(-12)),
)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(ROWS, max_size=12), min_size=1, max_size=4))
def test_totals_are_sums_over_distinct_requests(by_writer: list[list[LedgerRow]]) -> None:
    """Each writer is a ledger of its own in a thread of its own, all on one file, some on one request."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite3"
        # A request has one bill, however often it is reported.
        bills = {one.request_id: one for rows in by_writer for one in rows}
        together = threading.Barrier(len(by_writer))

        def write(rows: list[LedgerRow]) -> None:
            with closing(Ledger(SqliteStore(path))) as ledger:
                together.wait(30)
                for one in rows:
                    ledger.record(bills[one.request_id])
                ledger.flush()

        with ThreadPoolExecutor(len(by_writer)) as pool:
            list(pool.map(write, by_writer))
        with closing(SqliteStore(path)) as store:
            assert totals(store) == expected(bills.values(), lambda one: "")
            assert totals_by(store, Dimension.TENANT) == expected(bills.values(), lambda one: one.tenant)


def expected(rows, key) -> list[Totals]:  # type: ignore[no-untyped-def]
    groups = defaultdict(list)
    for one in rows:
        groups[key(one), one.currency].append(one)
    return [
        Totals(
            key=name,
            currency=currency,
            requests=len(group),
            hits=sum(one.classes.read > 0 for one in group),
            prompt=sum(one.classes.prompt for one in group),
            computed=sum(one.classes.computed for one in group),
            read=sum(one.classes.read for one in group),
            written=sum(one.classes.write_total for one in group),
            free=sum(one.classes.free for one in group),
            output=sum(one.classes.output for one in group),
            lost_tokens=50 * len(group),
            money=sum((one.money for one in group), Decimal()),
            lost_money=Decimal("0.000036") * len(group),
            first_token=0.25,
        )
        for (name, currency), group in sorted(groups.items())
    ]


def test_every_dimension_groups_by_what_its_name_says(store: LedgerStore) -> None:
    store.append(
        [
            row(1),
            row(2, tenant="beta", model="qwen", scene="sales", prompt_version="", at=ROW.at + 86_400),
            row(3, report=replace(REPORT, reason=Reason.NONE), prompt_name="other"),
        ]
    )
    keys = {dimension: [one.key for one in totals_by(store, dimension)] for dimension in Dimension}
    assert keys == {
        Dimension.TENANT: ["acme", "beta"],
        Dimension.MODEL: ["qwen", "smollm2"],
        Dimension.SCENE: ["sales", "support"],
        Dimension.PROMPT: ["greeting", "greeting@3", "other@3"],
        Dimension.REASON: ["NONE", "SYSTEM_CHANGED"],
        Dimension.DAY: ["2026-03-24", "2026-03-25"],
    }
    assert [one.requests for one in totals_by(store, Dimension.TENANT)] == [2, 1]


def test_a_span_begins_with_since_and_ends_before_until(store: LedgerStore) -> None:
    store.append([row(number, at=ROW.at + number) for number in range(10)])
    assert totals(store, Span(since=ROW.at + 2))[0].requests == 8
    assert totals(store, Span(until=ROW.at + 2))[0].requests == 2
    assert totals(store, Span(ROW.at + 2, ROW.at + 5))[0].requests == 3
    assert totals(store, Span(ROW.at + 100)) == []


def test_large_sums_are_exact(store: LedgerStore) -> None:
    """More than 64 bits of pico-units, and more digits than a float has."""
    each = Decimal("9000000.000000000001")
    store.append([row(number, money=each) for number in range(3)])
    assert totals(store)[0].money == 3 * each == Decimal("27000000.000000000003")


def test_hit_rates(store: LedgerStore) -> None:
    store.append(
        [
            row(1, classes=TokenClasses(Mode.IMPLICIT, 25, 75)),
            row(2, classes=TokenClasses(Mode.EXPLICIT, 50, 0, {"5m": 40}, free=10), first_token=None),
        ]
    )
    (sums,) = totals(store)
    assert sums.hit_rate == pytest.approx(75 / 200)
    assert sums.request_hit_rate == pytest.approx(1 / 2)
    assert sums.first_token == pytest.approx(0.25), "requests without a first token don't count"
