"""Logs as gateways, loggers and exporters really write them."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from hotprefix.doctor.reading import UnreadableFile
from hotprefix.doctor.report.figures import Report
from hotprefix.doctor.report.labels import moment
from hotprefix.doctor.report.table import Choice
from tests.doctor.report.logs import chat_answer, report_of, write_lines

NOON = 1_790_000_000.0


def kinds(report: Report) -> dict[str, int]:
    return {note.kind: note.count for note in report.notes}


@pytest.mark.parametrize(
    ("told", "at"),
    [
        (1_790_000_000, NOON),
        (1_790_000_000_000, NOON),
        ("1790000000000", NOON),
        (1_790_000_000_000_000, NOON),
        (1_790_000_000_000_000_000, NOON),
        ("2026-09-21T14:13:20Z", NOON),
        ("20260921T141320+00:00", NOON),
        ("1711012312345", 1_711_012_312.345),
        ("20260921", 1_789_948_800.0),
        ("0001-01-01T00:00:00Z", None),
        (0, None),
        (-5, None),
        ("soon", None),
        (True, None),
        ([1], None),
    ],
)
def test_moments_in_every_unit(told: Any, at: float | None) -> None:
    assert moment(told) == (at if at is None else pytest.approx(at))


@pytest.mark.parametrize("created", [1_790_000_001_123, 1e20, 1_790_000_001_123_456_789, "x", -1, None])
def test_times_that_no_calendar_has(tmp_path: Path, created: Any) -> None:
    """Gateways write milliseconds where OpenAI writes seconds."""
    entry = {
        "request": {"model": "gpt-5-mini", "messages": []},
        "response": chat_answer(1, 9, 3, created=created),
    }
    found = report_of(write_lines(tmp_path / "log", [entry]))
    assert (found.total.requests, found.total.priced) == (1, 1)


@pytest.mark.parametrize("count", [10**25, 2**63, 1e300, "9" * 5_000, "²", -1, 0.5])
def test_counts_beyond_all_measure_are_told_and_not_counted(tmp_path: Path, count: Any) -> None:
    wrong = chat_answer(1, 1, None)
    wrong["usage"]["prompt_tokens"] = count
    report = report_of(write_lines(tmp_path / "log", [wrong, chat_answer(2, 100, 50)]))
    assert (report.total.requests, report.total.prompt, kinds(report)["broken_usage"]) == (2, 100, 1)


def test_spend_beyond_all_measure_is_not_believed(tmp_path: Path) -> None:
    row = {
        "request_id": "a",
        "call_type": "acompletion",
        "api_key": "k",
        "spend": 1e12,
        "model": "gpt-5-mini",
    }
    log = write_lines(tmp_path / "log", [row | {"prompt_tokens": 10, "completion_tokens": 1}])
    assert report_of(log).total.money == ()


EMBEDDINGS = {
    "object": "list",
    "data": [{"object": "embedding", "embedding": [0.1]}],
    "model": "text-embedding-3-small",
    "usage": {"prompt_tokens": 8, "total_tokens": 8},
}
NATIVE = {"request_id": "r", "output": {"embeddings": [{"embedding": [1]}]}, "usage": {"total_tokens": 5}}


@pytest.mark.parametrize("answer", [EMBEDDINGS, NATIVE], ids=["openai", "dashscope"])
@pytest.mark.parametrize(
    "wrap", [lambda a: a, lambda a: {"response": a}, lambda a: {"response": {"body": a}}]
)
def test_embeddings_are_no_calls(tmp_path: Path, answer: dict[str, Any], wrap: Any) -> None:
    report = report_of(write_lines(tmp_path / "log", [wrap(answer), chat_answer(1, 100, 50)]))
    assert (report.total.requests, report.total.prompt) == (1, 100)
    assert kinds(report) == {"other_operation": 1}


FAILED = {
    "id": "resp_1",
    "object": "response",
    "status": "failed",
    "error": {"code": "server_error"},
    "usage": None,
}


def test_responses_that_failed_are_left_out(tmp_path: Path) -> None:
    events = [
        {
            "type": "response.created",
            "response": {"id": "resp_2", "object": "response", "status": "in_progress"},
        },
        {"type": "response.failed", "response": FAILED | {"id": "resp_2"}},
    ]
    report = report_of(write_lines(tmp_path / "log", [FAILED, *events, chat_answer(1, 100, 50)]))
    assert (report.total.requests, kinds(report)) == (1, {"failed": 2})


def test_a_stream_can_be_read_only_once_and_is_refused(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = json.dumps(chat_answer(1, 100, 50)).encode()
    writer = threading.Thread(target=lambda: pipe.write_bytes(content), daemon=True)
    writer.start()
    with pytest.raises(UnreadableFile, match="pipe is no file but a stream"):
        report_of(pipe)
    pipe.read_bytes()
    writer.join()


def test_halves_of_characters_and_numbers_that_are_none(tmp_path: Path) -> None:
    """JavaScript cuts texts between the halves of an emoji; Python writes NaN."""
    line = json.dumps({"scene": "desk ?", "cost": 0, "response": chat_answer(1, 100, 50)})
    line = line.replace("desk ?", r"desk \ud83d").replace('"cost": 0', '"cost": NaN')
    (tmp_path / "log").write_text(f"{line}\n{line.replace('chatcmpl-1', 'chatcmpl-2')}")
    found = report_of(tmp_path / "log")
    assert (found.total.requests, found.total.prompt) == (2, 200)


def test_lines_without_an_end_to_their_nesting(tmp_path: Path) -> None:
    (tmp_path / "log").write_text(json.dumps(chat_answer(1, 100, 50)) + "\n" + "[" * 100_000 + "\n")
    with pytest.raises(UnreadableFile, match="log:2"):
        report_of(tmp_path / "log")


def span(number: int, **attributes: Any) -> dict[str, Any]:
    """As the console exporter of the Python SDK prints it."""
    return {
        "name": "chat",
        "context": {"trace_id": "0xaa", "span_id": f"0x{number}", "trace_state": "[]"},
        "parent_id": None,
        "start_time": "2026-11-01T00:00:00.000000Z",
        "end_time": "2026-11-01T00:00:02.000000Z",
        "attributes": {
            "gen_ai.operation.name": "chat",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.cache_read.input_tokens": 64,
        }
        | attributes,
        "resource": {"attributes": {"service.name": "shop"}},
    }


def test_spans_as_the_console_exporter_prints_them(tmp_path: Path) -> None:
    log = tmp_path / "spans.log"
    text = "".join(json.dumps(span(number), indent=4) + "\n" for number in (1, 2, 3))
    log.write_text(text)
    assert (report_of(log).total.requests, report_of(log).total.read) == (3, 192)
    log.write_text(text + '{\n  "name": oops\n}\n')
    line = text.count("\n") + 2
    with pytest.raises(UnreadableFile, match=rf"spans\.log:{line}:\d+ is no JSON"):
        report_of(log)


def export(kind: str, **record: Any) -> dict[str, Any]:
    values = {"gen_ai.operation.name": "chat", "gen_ai.response.id": "o1"}
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in values.items()]
    counts = {"gen_ai.usage.input_tokens": "100", "gen_ai.usage.cache_read.input_tokens": "64"}
    attributes += [{"key": key, "value": {"intValue": value}} for key, value in counts.items()]
    record |= {"traceId": "aa", "attributes": attributes}
    outer, inner, leaf = (
        ("resourceSpans", "scopeSpans", "spans")
        if kind == "span"
        else ("resourceLogs", "scopeLogs", "logRecords")
    )
    return {outer: [{inner: [{leaf: [record]}]}]}


def test_a_span_and_the_event_within_it_are_one_call(tmp_path: Path) -> None:
    spans = write_lines(
        tmp_path / "traces",
        [
            export(
                "span",
                spanId="01",
                startTimeUnixNano="1794000000000000000",
                endTimeUnixNano="1794000002000000000",
            )
        ],
    )
    events = write_lines(
        tmp_path / "logs",
        [
            export("event", spanId="01", timeUnixNano="1794000002000000000"),
            # Of a span that is not in the logs: an HTTP server's, within which two models were asked.
            export("event", spanId="09", timeUnixNano="1794000003000000000"),
            export("event", spanId="09", timeUnixNano="1794000004000000000"),
        ],
    )
    report = report_of(spans, events)
    assert (report.total.requests, report.total.prompt) == (3, 300)
    assert kinds(report)["event_of_span"] == 1
    assert report_of(events).total.requests == 3


def test_calls_without_a_time_are_told_where_one_is_asked_for(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log", [chat_answer(1, 100, 50), chat_answer(2, 100, 50, created=None)])
    report = report_of(log, choice=Choice(since=1.0))
    assert (report.total.requests, kinds(report)) == (1, {"no_time": 1})
