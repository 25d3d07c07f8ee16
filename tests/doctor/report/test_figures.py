"""Sums, times, and ideal against actual, of calls made up by hand."""

from __future__ import annotations

from decimal import Decimal

import polars as pl
import pytest

from hotprefix.diagnosis.reason import Reason
from hotprefix.doctor.report.figures import Cause, Money
from hotprefix.doctor.report.gap import CAUSES, gap_of
from hotprefix.doctor.report.latency import latency_of
from hotprefix.doctor.report.offenders import offenders_of
from hotprefix.doctor.report.sums import total_of
from hotprefix.doctor.report.timeline import timeline_of
from tests.doctor.report.logs import call, table_of


def test_not_reported_is_not_zero() -> None:
    calls = table_of(call(prompt=100, read=80), call(prompt=900), call(prompt=100, read=0), call(read=7))
    total = total_of(calls)
    assert (total.requests, total.measured, total.hits) == (4, 2, 1)
    assert (total.prompt, total.read, total.computed) == (1100, 80, 120)
    assert total.hit_rate == 0.4, "of the tokens of the calls that reported it"
    assert (total.written, total.output, total.lost, total.first_token) == (None, None, None, None)
    nothing = total_of(table_of(call(prompt=900)))
    assert (nothing.read, nothing.hit_rate, nothing.request_hit_rate) == (None, None, None)
    assert total_of(table_of()).requests == 0


def test_money_keeps_every_pico_unit_and_currencies_apart() -> None:
    huge = 9 * 10**18
    calls = table_of(
        *(call(money=huge + 1, currency="USD") for _ in range(3)), call(money=5, currency="CNY"), call()
    )
    total = total_of(calls)
    assert total.money == (
        Money("CNY", Decimal("0.000000000005")),
        Money("USD", Decimal("27000000.000000000003")),
    )
    assert total.priced == 4


def test_every_reason_has_one_cause() -> None:
    assert set(CAUSES) == {reason.value for reason in Reason}


def test_ideal_actual_and_what_lies_between() -> None:
    calls = table_of(
        call(
            prompt=1000,
            read=200,
            lost=500,
            reason="SYSTEM_CHANGED",
            avoidable=True,
            lost_money=50,
            currency="USD",
        ),
        call(prompt=1000, read=0, lost=300, reason="TTL_EXPIRED", avoidable=True, evidence="inferred"),
        call(prompt=500, read=300, lost=100, reason="EXPECTED_TEMPLATE", avoidable=False),
        call(prompt=500, read=0, lost=0, reason="COLD_FIRST_USE", avoidable=False),
        call(prompt=1000, read=10),
        call(prompt=100, reason="NOT_REPORTED", lost=0),
        call(prompt=400, read=0, lost=50, reason="A_REASON_TO_COME", avoidable=True),
    )
    gap = gap_of(calls, total_of(calls))
    assert gap is not None
    assert (gap.prompt, gap.read, gap.lost) == (3400, 500, 950)
    assert gap.coverage == 3400 / 4500
    assert (gap.actual, gap.ceiling) == (500 / 3400, 1450 / 3400)
    found = {loss.cause: (loss.requests, loss.tokens, loss.inferred, loss.avoidable) for loss in gap.losses}
    assert found == {
        Cause.PROMPT: (1, 500, 0, 500),
        Cause.TTL: (1, 300, 300, 300),
        Cause.TEMPLATE: (1, 100, 0, 0),
        Cause.UNKNOWN: (1, 50, 0, 50),
    }
    assert gap.losses[0].cause is Cause.PROMPT
    assert gap.losses[0].money == (Money("USD", Decimal("0.00000000005")),)
    assert gap_of(table_of(call(prompt=1, read=1)), total_of(table_of(call(prompt=1, read=1)))) is None


def test_hits_against_misses_and_by_the_share_that_was_read() -> None:
    shares = (0, 100, 250, 300, 750, 950, 1000)
    calls = [call(prompt=1000, read=read, first_token=1.0 - read / 1000) for read in shares]
    calls += [
        call(prompt=1000, read=0),
        call(prompt=1000, first_token=9.0),
        call(prompt=0, read=0, first_token=9.0),
    ]
    latency = latency_of(table_of(*calls))
    assert latency.miss is not None
    assert latency.hit is not None
    assert (latency.miss.count, latency.hit.count) == (1, 6)
    assert latency.hit.percentiles[50] == pytest.approx((0.7 + 0.25) / 2)
    assert [(name, spread.count) for name, spread in latency.shares] == [
        ("0 %", 1), ("≤ 25 %", 2), ("25–50 %", 1), ("50–75 %", 1), ("75–95 %", 1), ("> 95 %", 1),
    ]  # fmt: skip


def test_percentiles_lie_between_neighbours() -> None:
    calls = table_of(*(call(prompt=10, read=5, first_token=float(second)) for second in range(101)))
    spread = latency_of(calls).hit
    assert spread is not None
    assert spread.percentiles == pytest.approx({50: 50.0, 90: 90.0, 95: 95.0, 99: 99.0})


def test_time_goes_in_usual_steps_from_round_times() -> None:
    calls = [call(at=1_790_000_000.0 + 100 * number, prompt=10, read=number % 2) for number in range(200)]
    timeline = timeline_of(table_of(*calls))
    assert timeline is not None
    assert timeline.width == 300
    assert all(int(sums.key) % 300 == 0 for sums in timeline.spans)
    assert sum(sums.requests for sums in timeline.spans) == 200
    assert len(timeline.spans) <= 72
    assert timeline_of(table_of(call(prompt=1))) is None


def test_offenders_by_what_they_lost() -> None:
    calls = [
        call(prompt_name="greet", prompt_version="2", lost=10, reason="TOOLS_CHANGED", path="tools[0]"),
        call(prompt_name="greet", prompt_version="2", lost=90, reason="TOOLS_CHANGED", path="tools[7]",
             advice_en="Keep them.", lost_money=7, currency="USD"),
        call(words="You are a clerk", lost=60, reason="HEAD_TRIMMED"),
        call(words="You are a clerk", lost=0, reason="NONE"),
        call(scene="desk@1", lost=5, reason="EVICTED"),
    ]  # fmt: skip
    first, second = offenders_of(table_of(*calls), top=2)
    assert (first.label, first.reason, first.requests, first.tokens) == ("greet@2", "TOOLS_CHANGED", 2, 100)
    assert (first.path, first.advice_en) == ("tools[7]", "Keep them."), "of the call that lost most"
    assert first.money == (Money("USD", Decimal("0.000000000007")),)
    assert (second.label, second.tokens) == ("You are a clerk", 60)


def test_offenders_without_reasons_go_by_what_was_computed() -> None:
    calls = table_of(
        call(words="A", prompt=100, read=90), call(words="B", prompt=50, read=0), call(words="C", prompt=9)
    )
    assert [(one.label, one.reason, one.tokens) for one in offenders_of(calls, 5)] == [
        ("B", None, 50),
        ("A", None, 10),
    ]


def test_columns_hold_what_calls_hold() -> None:
    table = table_of(call(avoidable=False, tools_print=2**64 - 1, at=1.5), call())
    row = table.collect().row(0, named=True)
    assert (row["avoidable"], row["tools_print"], row["at"], row["source"]) == (
        False,
        2**64 - 1,
        1.5,
        "openai-chat",
    )
    assert table.select(pl.col("prompt").null_count()).collect().item() == 2
