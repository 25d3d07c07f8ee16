"""A small log of each kind, with totals worked out by hand."""

from __future__ import annotations

import gzip
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from hotprefix.doctor.report.figures import Dimension, Money, Sums
from hotprefix.doctor.report.pricing import Pricing
from hotprefix.doctor.report.trouble import Troubles
from tests.doctor.report.logs import BOOK, SAMPLES, call, report_of

# Money by the dated tables: gpt-5-mini 0.25 / 2 USD per million, reads 10 %; claude-sonnet-5-5 2 / 10 USD,
# writes 125 % (5m) and 200 % (1h), reads 10 % and from 7 October 2026 on 5 %; gpt-4.1 2 / 8 USD, reads 25 %;
# qwen-plus 0.8 / 2 CNY, reads 20 % (implicit) and 10 % (explicit), writes 125 %.
TOTALS: dict[str, dict[str, Any]] = {
    # 2000/0, 2006/1920, 2010/1920 streamed, 984/0; one failed, one stream without usage
    "openai-chat.jsonl": {
        "requests": 5, "measured": 4, "hits": 2, "prompt": 7000, "read": 3840, "computed": 3160,
        "written": None, "output": 200, "money": "0.001286 USD",
    },
    # 300/256 and 500/128, their chunks interleaved
    "openai-chunks.jsonl": {
        "requests": 2, "measured": 2, "hits": 2, "prompt": 800, "read": 384, "computed": 416,
        "written": None, "output": 10, "money": "0.0001336 USD",
    },
    # 1500/0 with 1400 written; 1700/1400 with 200 written, as a list of events
    "openai-responses.jsonl": {
        "requests": 2, "measured": 2, "hits": 1, "prompt": 3200, "read": 1400, "computed": 200,
        "written": 1600, "output": 50, "money": "0.000585 USD",
    },
    # 50 + 0 + 2048 written (half 5m, half 1h); 52 + 2048 read, streamed; 400, nothing reported of the cache
    "anthropic.jsonl": {
        "requests": 3, "measured": 2, "hits": 1, "prompt": 4598, "read": 2048, "computed": 102,
        "written": 2048, "output": 50, "money": "0.0077196 USD",
    },
    # 1618 with 1605 written, 1620/1605, 900/256 (no model, no price), 3019/2048 implicit, 1524/1305 + 213
    "dashscope.jsonl": {
        "requests": 5, "measured": 5, "hits": 4, "prompt": 8681, "read": 5214, "computed": 1649,
        "written": 1818, "output": 254, "money": "0.00367048 CNY",
    },
    # three events of one answer, each with the counts so far
    "dashscope.sse": {
        "requests": 1, "measured": 1, "hits": 1, "prompt": 1200, "read": 1024, "computed": 176,
        "written": None, "output": 2, "money": None,
    },
    # 1000/800, 3500/3000 + 400, 100 beside 900 read, 1000 not reported; 3 × 0.0025 USD as booked, one priced
    "litellm-spend.jsonl": {
        "requests": 4, "measured": 3, "hits": 3, "prompt": 6500, "read": 4700, "computed": 400,
        "written": 400, "output": 45, "money": "0.00784 USD",
    },
    "litellm-callback.jsonl": {
        "requests": 1, "measured": 1, "hits": 1, "prompt": 2000, "read": 1536, "computed": 464,
        "written": None, "output": 30, "money": "0.001 USD",
    },
    # 2000/1024; 100 beside 2900 read, in the inner of two spans; an event of 700, nothing of the cache
    "otel.jsonl": {
        "requests": 3, "measured": 2, "hits": 2, "prompt": 5700, "read": 3924, "computed": 1076,
        "written": 0, "output": 65, "money": "0.003514 USD",
    },
    "server.jsonl": {
        "requests": 2, "measured": 2, "hits": 1, "prompt": 2010, "read": 990, "computed": 1020,
        "written": None, "output": 17, "money": None,
    },
}  # fmt: skip


def facts(sums: Sums) -> dict[str, Any]:
    names = ("requests", "measured", "hits", "prompt", "read", "computed", "written", "output")
    money = [f"{one.amount.normalize():f} {one.currency}" for one in sums.money]
    return {name: getattr(sums, name) for name in names} | {"money": money[0] if money else None}


@pytest.mark.parametrize("name", TOTALS)
def test_totals(name: str) -> None:
    assert facts(report_of(SAMPLES / name).total) == TOTALS[name]


def test_all_of_them_at_once_some_of_them_packed(tmp_path: Path) -> None:
    logs = []
    for number, name in enumerate(TOTALS):
        path = SAMPLES / name
        if number % 2:
            path = tmp_path / f"{name}.gz"
            with (SAMPLES / name).open("rb") as plain, gzip.open(path, "wb") as packed:
                shutil.copyfileobj(plain, packed)
        logs.append(path)
    report = report_of(*logs, by=(Dimension.SOURCE,))
    for name in ("requests", "measured", "hits", "prompt", "read", "computed", "output"):
        assert getattr(report.total, name) == sum(total[name] for total in TOTALS.values()), name
    assert {sums.key for sums in report.groups[Dimension.SOURCE]} == {
        "openai-chat", "openai-responses", "anthropic", "dashscope", "litellm", "opentelemetry", "server log",
    }  # fmt: skip


def notes(name: str) -> dict[str, tuple[int, str]]:
    found = report_of(SAMPLES / name).notes
    return {note.kind: (note.count, note.place.rpartition("/")[2]) for note in found}


def test_what_is_left_out_is_told_with_its_place() -> None:
    assert notes("openai-chat.jsonl") == {
        "failed": (1, "openai-chat.jsonl:5"),
        "no_usage": (1, "openai-chat.jsonl:6"),
    }
    assert notes("litellm-spend.jsonl") == {
        "beside": (1, "litellm-spend.jsonl:3"),
        "gateway_cache": (1, "litellm-spend.jsonl:5"),
        "other_operation": (1, "litellm-spend.jsonl:6"),
        "failed": (1, "litellm-spend.jsonl:7"),
    }
    assert notes("otel.jsonl") == {
        "beside": (1, "otel.jsonl:1"),
        "nested_span": (1, ""),
        "other_operation": (1, "otel.jsonl:1"),
    }


def test_labels() -> None:
    groups = report_of(SAMPLES / "litellm-callback.jsonl").groups
    assert groups[Dimension.TENANT][0].key == "green"
    assert groups[Dimension.SCENE][0].key == "chat"
    assert groups[Dimension.PROMPT][0].key == "greet@4"
    groups = report_of(SAMPLES / "otel.jsonl").groups
    assert [sums.key for sums in groups[Dimension.PROMPT]] == ["", "ask@2"]
    groups = report_of(SAMPLES / "openai-chat.jsonl").groups
    assert {sums.key: sums.requests for sums in groups[Dimension.SCENE]} == {"desk@1": 2, "desk@2": 1, "": 2}
    assert [sums.key for sums in report_of(SAMPLES / "litellm-spend.jsonl").groups[Dimension.SCENE]] == [
        "billing"
    ]


def test_times_to_the_first_token() -> None:
    spread = report_of(SAMPLES / "litellm-spend.jsonl").total.first_token
    # 0.25, 0.5 and 0.1; where the stream "began" as it ended, nobody saw the first token
    assert spread is not None
    assert (spread.count, spread.percentiles[50]) == (3, pytest.approx(0.25))
    latency = report_of(SAMPLES / "openai-chat.jsonl").latency
    assert latency.miss is not None
    assert latency.hit is not None
    assert (latency.miss.count, latency.miss.mean) == (1, pytest.approx(0.9))
    assert (latency.hit.count, latency.hit.mean) == (2, pytest.approx(0.25))


def test_prices_of_two_dates_and_the_double_count() -> None:
    pricing = Pricing(BOOK, Troubles())
    booked = [
        call(model="claude-sonnet-5-5", prompt=1_000_000, read=1_000_000, output=0, at=at, mode="explicit")
        for at in (1_790_000_000.0, 1_792_000_000.0)  # 21 September and 14 October 2026
    ]
    for one in booked:
        pricing.price(one)
    assert [one.money for one in booked] == [200_000_000_000, 100_000_000_000]
    # T31 of a bill that was wrong elsewhere: 172,000 in, of which 155,000 read and 3,000 written
    paid = call(
        model="claude-opus-4-9", prompt=172_000, read=155_000, written=3_000, output=0, mode="explicit"
    )
    paid.by_ttl, paid.at = {"5m": 3_000}, 1_790_000_000.0
    pricing.price(paid)
    assert Money("USD", Decimal(paid.money or 0).scaleb(-12)) == Money("USD", Decimal("0.16625"))


def test_a_price_that_is_not_known_is_none() -> None:
    troubles = Troubles()
    pricing = Pricing(BOOK, troubles)
    for one in (
        call(model="llama-3", provider="openai", prompt=5, read=0, output=1),
        call(prompt=5, read=0, output=1),
    ):
        pricing.price(one)
        assert one.money is None
    unread = call(model="gpt-4.1", prompt=5, output=1)
    pricing.price(unread)
    assert unread.money is None, "at which price it was read is not known"
    assert {subject for _, subject in troubles.counts} == {"llama-3", ""}
