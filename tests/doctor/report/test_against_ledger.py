"""What a report counts, the ledger's own totals, and what the answers of a server said are the same."""

from __future__ import annotations

import json
import os
import stat
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hotprefix.app.cli import build_app
from hotprefix.doctor.reading import UnreadableFile
from hotprefix.doctor.report.figures import Dimension, Money, Report, Sums
from hotprefix.doctor.report.make import Choice
from hotprefix.ledger.export import export
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.query import Dimension as LedgerDimension
from hotprefix.ledger.query import Totals, totals, totals_by
from hotprefix.ledger.store import LEDGER_FILE, LedgerStore, open_store
from hotprefix.modes.classes import Mode, TokenClasses
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import in_process
from tests.doctor.report.logs import report_of, write_lines
from tests.ledger.rows import REPORT, ROW, row

RULES = "The rules of the house never change, and everybody knows them. " * 30
MARKED = [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
NATIVE = "/api/v1/services/aigc/text-generation/generation"


def requests() -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Path, body and headers of requests in all dialects, as streams and not."""
    found: list[tuple[str, dict[str, Any], dict[str, str]]] = []
    for question in ("How?", "And why?"):
        talk = [{"role": "system", "content": RULES}, {"role": "user", "content": question}]
        marked = [{"role": "system", "content": MARKED}, {"role": "user", "content": question}]
        for streamed in (False, True):
            rest: dict[str, Any] = {"stream": True} if streamed else {}
            more = {"stream_options": {"include_usage": True}} if streamed else {}
            chat = {"model": "scripted", "messages": marked} | rest | more
            found.append(("/v1/chat/completions", chat, {"x-hotprefix-session": "desk@1"}))
            found.append(("/v1/responses", {"model": "scripted", "input": RULES + question} | rest, {}))
            claude = {"model": "scripted", "max_tokens": 5, "system": MARKED, "messages": talk[1:]} | rest
            found.append(("/v1/messages", claude, {}))
            native = {
                "model": "scripted",
                "input": {"messages": talk},
                "parameters": {"result_format": "message"},
            }
            found.append((NATIVE, native, {"x-dashscope-sse": "enable"} if streamed else {}))
    return found


@pytest.mark.anyio
async def test_a_report_of_the_ledger_and_one_of_the_answers(tmp_path: Path) -> None:
    store = open_store(tmp_path / LEDGER_FILE)
    ledger = Ledger(store)
    logged = []
    async with in_process(ScriptedEngine(), ledger=ledger) as server:
        for number, (path, body, headers) in enumerate(requests()):
            answer = await server.client.post(path, json=body, headers=headers)
            assert answer.status_code == 200, answer.text
            is_stream = answer.headers["content-type"].startswith("text/event-stream")
            logged.append(
                {
                    "timestamp": 1_790_000_000 + number,
                    "url": path,
                    "headers": headers,
                    "request": body,
                    "response": answer.text if is_stream else answer.json(),
                }
            )
    ledger.flush()
    cny, usd = totals(store)
    by_scene = totals_by(store, LedgerDimension.SCENE)
    ledger.close()
    of_ledger = report_of(tmp_path / LEDGER_FILE)
    expected = tuple(map(sum, zip(totals_counts(cny), totals_counts(usd), strict=True)))
    assert counts(of_ledger.total) == expected
    assert of_ledger.total.money == (Money(cny.currency, cny.money), Money(usd.currency, usd.money))
    assert {one.key for one in of_ledger.groups[Dimension.SCENE]} == {"", "desk@1"}
    for found in of_ledger.groups[Dimension.SCENE]:
        same = [total for total in by_scene if total.key == found.key]
        assert found.requests == sum(total.requests for total in same)
        assert found.read == sum(total.read for total in same)

    of_answers = report_of(write_lines(tmp_path / "answers.jsonl", logged))
    for name in ("requests", "measured", "hits", "prompt", "computed", "read", "output"):
        assert getattr(of_answers.total, name) == getattr(of_ledger.total, name), name
    assert (of_answers.total.written or 0) == of_ledger.total.written
    assert {note.kind for note in of_answers.notes} <= {"assumed_price", "unpriced", "early_price"}

    claudes = [one for one in logged if one["url"] == "/v1/messages"]
    others = [one for one in logged if one["url"] != "/v1/messages"]
    for name, chosen, profile, total in (
        ("claude", claudes, "anthropic-2026-09", usd),
        ("others", others, "dashscope-2026-03", cny),
    ):
        priced = report_of(write_lines(tmp_path / f"{name}.jsonl", chosen), profile=profile)
        assert priced.total.money == (Money(total.currency, total.money),), "by the same table as the server"


def counts(sums: Sums) -> tuple[int | None, ...]:
    return (
        sums.requests, sums.hits, sums.prompt, sums.computed, sums.read, sums.written, sums.free, sums.output,
        sums.lost,
    )  # fmt: skip


def totals_counts(total: Totals) -> tuple[int, ...]:
    return (
        total.requests, total.hits, total.prompt, total.computed, total.read, total.written, total.free,
        total.output, total.lost_tokens,
    )  # fmt: skip


def fill(store: LedgerStore) -> None:
    """Rows of two tenants, currencies and days; one without a scene, one without a first token."""
    other = replace(REPORT, lost_tokens=7, lost_money=0.5, avoidable=False, divergence=None)
    store.append(
        [
            row(1, classes=TokenClasses(Mode.IMPLICIT, 250, 700, free=50, output=5)),
            row(2, at=ROW.at + 86_400, tenant="[red]beta[/]", scene="", prompt_version=""),
            row(3, currency="USD", model="qwen-plus", report=other, first_token=None),
            row(4, money=Decimal("9000000.000000000001"), prompt_name="", prompt_version=""),
        ]
    )


def check(report: Report, store_totals: list[Totals]) -> None:
    assert report.total.requests == sum(total.requests for total in store_totals) == 4
    for name in ("prompt", "computed", "read", "written", "free", "output"):
        assert getattr(report.total, name) == sum(getattr(total, name) for total in store_totals), name
    assert report.total.lost == sum(total.lost_tokens for total in store_totals)
    assert report.total.money == tuple(Money(total.currency, total.money) for total in store_totals)
    assert report.total.lost_money == tuple(Money(total.currency, total.lost_money) for total in store_totals)
    assert report.total.first_token is not None
    assert report.total.first_token.count == 3
    assert report.total.avoidable == 150
    assert report.gap is not None
    assert report.gap.coverage == 1.0
    assert report.offenders[0].path == "messages[0].content"
    assert {sums.key for sums in report.groups[Dimension.PROMPT]} == {"greeting@3", "greeting", ""}


def test_every_form_of_the_ledger(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / LEDGER_FILE)) as store:
        fill(store)
        expected = totals(store)
        export(store, tmp_path / "usage.csv")
        export(store, tmp_path / "usage.parquet")
        check(report_of(tmp_path / LEDGER_FILE), expected)  # while it is in use
    for name in (LEDGER_FILE, "usage.csv", "usage.parquet"):
        check(report_of(tmp_path / name), expected)


def test_a_ledger_in_postgresql(postgres_url: str) -> None:
    with closing(open_store(postgres_url)) as store:
        fill(store)
        expected = totals(store)
    check(report_of(postgres_url), expected)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes anywhere")
def test_a_ledger_in_a_folder_that_cant_be_written_to(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / LEDGER_FILE)) as store:
        fill(store)
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert report_of(tmp_path / LEDGER_FILE).total.requests == 4
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_nothing_of_the_ledger_changes(tmp_path: Path) -> None:
    file = tmp_path / LEDGER_FILE
    with closing(open_store(file)) as store:
        fill(store)
    before = file.read_bytes()
    report_of(file)
    assert file.read_bytes() == before


def test_other_databases_are_refused(tmp_path: Path) -> None:
    import sqlite3

    with closing(sqlite3.connect(tmp_path / "other.db")) as database:
        database.execute("CREATE TABLE cats (name TEXT)")
        database.commit()
    with pytest.raises(UnreadableFile, match="no ledger"):
        report_of(tmp_path / "other.db")
    (tmp_path / "other.csv").write_text("name,age\nMia,3\n")
    with pytest.raises(UnreadableFile, match="Its columns are: name, age"):
        report_of(tmp_path / "other.csv")


def test_choices(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / LEDGER_FILE)) as store:
        fill(store)
    ledger = tmp_path / LEDGER_FILE
    day = ROW.at + 86_400
    assert report_of(ledger, choice=Choice(since=day)).total.requests == 1
    assert report_of(ledger, choice=Choice(until=day)).total.requests == 3
    assert report_of(ledger, choice=Choice(since=ROW.at, until=ROW.at)).total.requests == 0
    assert report_of(ledger, choice=Choice(tenants=("[red]beta[/]",))).total.requests == 1
    assert report_of(ledger, choice=Choice(scenes=("support",))).total.requests == 3


def test_usage_and_report_agree_on_the_command_line(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / LEDGER_FILE)) as store:
        fill(store)
    run = CliRunner().invoke
    used = json.loads(
        run(build_app(), ["usage", "--state-dir", str(tmp_path), "--by", "reason", "--json"]).output
    )
    found = json.loads(
        run(build_app(), ["report", str(tmp_path / LEDGER_FILE), "--by", "reason", "-f", "json"]).output
    )
    for group in found["groups"]["reason"]:
        same = [one for one in used["groups"] if one["reason"] == group["key"]]
        assert group["requests"] == sum(one["requests"] for one in same)
        assert group["read"] == sum(one["read"] for one in same)
        assert group["money"] == {one["currency"]: one["money"] for one in same}
