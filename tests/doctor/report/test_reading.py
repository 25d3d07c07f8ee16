"""Logs that are cut short, mixed up, packed or no logs at all."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from hotprefix.doctor.reading import UnreadableFile
from hotprefix.doctor.report.answer import read_answer
from hotprefix.doctor.report.call import Source
from hotprefix.doctor.report.figures import Dimension, Sums
from hotprefix.doctor.report.trouble import Trouble
from hotprefix.doctor.report.wording import Language, note_told
from tests.doctor.report.logs import SAMPLES, chat_answer, report_of, write_lines


def total(path: Path) -> Sums:
    return report_of(path).total


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", r"log is empty"),
        (b'{"a": 1}\n{broken\n{"b": 2}\n', r"log:2:2 is no JSON"),
        (b'{\n  "usage": {"prompt_tokens": 1,}\n}\n', r"log:2:\d+ is no JSON"),
        (b"[1, 2, 3]\n", r"holds no JSON objects"),
        (b"data: {broken}\n", r"log:1 is no JSON"),
        (b"just some words\n", r"log:1 is neither JSON, nor CSV"),
        (b"\x1f\x8b\x08\x00rest", r"is no whole gzip file"),
        (b"SQLite format 3\0rest", r"no ledger that can be read"),
        (b"PAR1rest", r"can't be read as parquet"),
    ],
)
def test_what_cant_be_read_is_refused_with_its_place(tmp_path: Path, content: bytes, told: str) -> None:
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(UnreadableFile, match=told):
        report_of(tmp_path / "log")


def test_folders_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="is a folder"):
        report_of(tmp_path)
    with pytest.raises(UnreadableFile, match="There is no file"):
        report_of(tmp_path / "none")


def test_a_gzip_file_that_was_cut_off(tmp_path: Path) -> None:
    packed = gzip.compress((SAMPLES / "openai-chat.jsonl").read_bytes())
    (tmp_path / "cut.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UnreadableFile, match="no whole gzip file"):
        report_of(tmp_path / "cut.gz")


def test_a_line_that_is_still_being_written_is_left_out(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log", [chat_answer(1, 100, 50), chat_answer(2, 100, 50)])
    log.write_bytes(log.read_bytes()[:-30])
    assert total(log).requests == 1


def test_a_byte_order_mark_blank_lines_and_a_pretty_array(tmp_path: Path) -> None:
    answers = [chat_answer(1, 100, 50), chat_answer(2, 200, 0)]
    lines = "\ufeff" + json.dumps(answers[0]) + "\r\n\r\n" + json.dumps(answers[1])
    (tmp_path / "lines").write_text(lines, encoding="utf-8")
    (tmp_path / "array").write_text(json.dumps(answers, indent=2))
    (tmp_path / "page").write_text(json.dumps({"data": answers, "has_more": False}, indent=1))
    for name in ("lines", "array", "page"):
        assert (total(tmp_path / name).requests, total(tmp_path / name).prompt) == (2, 300), name


def test_a_first_line_that_is_longer_than_what_is_looked_at(tmp_path: Path) -> None:
    long = {"request": {"model": "m", "messages": [{"role": "user", "content": "x" * 200_000}]}}
    log = write_lines(tmp_path / "log", [long | {"response": chat_answer(1, 9, 3)}, chat_answer(2, 5, 0)])
    assert total(log).prompt == 14


def test_other_entries_are_counted_and_left_out(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log", [{"event": "start"}, chat_answer(1, 10, 5), "text", 7])
    report = report_of(log)
    assert report.total.requests == 1
    assert [(note.kind, note.count, note.place) for note in report.notes] == [("no_call", 3, f"{log}:1")]


BATCH = {
    "id": "batch_req_1",
    "custom_id": "r1",
    "response": {"status_code": 200, "body": chat_answer(1, 90, 64)},
}
WRAPPED: list[tuple[str, dict[str, Any]]] = [
    ("bare", chat_answer(1, 90, 64)),
    ("batch output", BATCH),
    ("body as text", {"response_body": json.dumps(chat_answer(1, 90, 64))}),
    ("usage alone", {"model": "gpt-5-mini", "usage": chat_answer(1, 90, 64)["usage"]}),
    ("text and usage", {"completion": "Yes.", "usage": chat_answer(1, 90, 64)["usage"]}),
    ("request as text", {"request": '{"model":"m","messages":[]}', "response": chat_answer(1, 90, 64)}),
]


@pytest.mark.parametrize("entry", [case[1] for case in WRAPPED], ids=[case[0] for case in WRAPPED])
def test_an_answer_however_it_is_wrapped(tmp_path: Path, entry: dict[str, Any]) -> None:
    found = total(write_lines(tmp_path / "log", [entry]))
    assert (found.requests, found.prompt, found.read, found.output) == (1, 90, 64, 10)


def test_messages_whose_events_run_into_each_other_are_refused(tmp_path: Path) -> None:
    def start(number: int) -> dict[str, Any]:
        usage = {"input_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        return {"type": "message_start", "message": {"id": f"m{number}", "type": "message", "usage": usage}}

    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
    log = write_lines(tmp_path / "one", [start(1), end, {"type": "message_stop"}, start(2), end])
    assert (total(log).requests, total(log).output) == (2, 6)
    mixed = write_lines(tmp_path / "mixed", [start(1), start(2), end])
    with pytest.raises(UnreadableFile, match=r"mixed:2: a message begins before the one of line 1"):
        report_of(mixed)


def test_deltas_say_only_what_has_changed() -> None:
    usage = {
        "input_tokens": 5,
        "cache_read_input_tokens": 7,
        "cache_creation_input_tokens": 0,
        "output_tokens": 1,
    }
    events = [
        {"type": "message_start", "message": {"id": "m", "type": "message", "usage": usage}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    ]
    answer = read_answer(events)
    assert answer is not None
    assert (answer.source, answer.finish) == (Source.ANTHROPIC, "end_turn")
    assert (answer.classes().prompt, answer.classes().read, answer.classes().output) == (12, 7, 9)


def test_headers_of_our_server_bring_the_reason(tmp_path: Path) -> None:
    headers = {
        "X-Hotprefix-Miss-Reason": "TTL_EXPIRED",
        "X-Hotprefix-Lost-Tokens": "40",
        "X-Hotprefix-Avoidable": "true",
        "X-Hotprefix-Evidence": "proved by the store's log",
    }
    entry = {
        "timestamp": "2026-11-01T00:00:00Z",
        "headers": {"X-Hotprefix-Session": "desk@2", "X-Hotprefix-Prompt": "greet@7"},
        "response": {"headers": headers, "body": chat_answer(1, 90, 0)},
    }
    report = report_of(write_lines(tmp_path / "log", [entry]))
    assert report.gap is not None
    assert [(loss.cause.value, loss.tokens, loss.avoidable) for loss in report.gap.losses] == [
        ("ttl", 40, 40)
    ]
    assert [sums.key for sums in report.groups[Dimension.PROMPT]] == ["greet@7"]
    assert [sums.key for sums in report.groups[Dimension.SCENE]] == ["desk@2"]


def test_the_same_call_in_logs_of_two_kinds_is_told(tmp_path: Path) -> None:
    answer = chat_answer(1, 90, 64)
    one = write_lines(tmp_path / "one", [answer])
    line = {"request_id": answer["id"], "prompt_tokens": 90, "cached_tokens": 64, "completion_tokens": 10}
    line |= {"level": "info", "event": "request", "timestamp": "2026-09-21T14:13:21Z"}
    other = write_lines(tmp_path / "other", [line])
    assert "two_kinds" in {note.kind for note in report_of(one, other).notes}


@pytest.mark.parametrize("kind", list(Trouble))
@pytest.mark.parametrize("language", list(Language))
def test_every_trouble_has_words(kind: Trouble, language: Language) -> None:
    from hotprefix.doctor.report.figures import Note

    told = note_told(Note(kind.value, "x", 1234, "log:5"), language)
    assert "1,234" in told
    assert "log:5" in told
