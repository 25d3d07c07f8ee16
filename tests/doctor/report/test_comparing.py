"""Reasons of logs that hold their requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hotprefix.doctor.report.figures import Cause, Pattern, Report
from tests.doctor.report.logs import chat_answer, report_of, write_lines

RULES = " ".join(f"Rule {number}: every pallet in lane {number % 17} has a label." for number in range(200))
START = 1_790_000_000


def chat(number: int, read: int | None, system: str = RULES, **more: Any) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}, {"role": "user", "content": f"Question {number}?"}]
    return {
        "timestamp": START + 60 * number,
        "session_id": "s",
        "request": {"model": "gpt-5-mini", "messages": messages, **more},
        "response": chat_answer(number, 2600, read),
    }


def causes(report: Report) -> dict[Cause, int]:
    assert report.gap is not None
    return {loss.cause: loss.tokens for loss in report.gap.losses}


def test_a_clock_at_the_head(tmp_path: Path) -> None:
    entries = [chat(n, 0, f"Report time 2031-04-05T10:00:{n:02}\n{RULES}") for n in range(6)]
    report = report_of(write_lines(tmp_path / "log", entries))
    found = causes(report)
    assert list(found) == [Cause.PROMPT]
    assert 5 * 2000 < found[Cause.PROMPT] <= 5 * 2600
    offender = report.offenders[0]
    assert (offender.reason, offender.detail) == ("SYSTEM_CHANGED", "VOLATILE_TIME")
    assert offender.path == "messages[0].content"
    assert report.total.avoidable_money, "priced by the vendor's table"
    assert report.total.avoidable_money[0].amount < report.total.money[0].amount
    assert report.sessions is not None
    assert report.sessions.totals == {Pattern.SYSTEM_FLIP: 1}


def test_a_prompt_that_stays_and_is_read_loses_nothing(tmp_path: Path) -> None:
    entries = [chat(number, 2432 if number else 0) for number in range(5)]
    report = report_of(write_lines(tmp_path / "log", entries))
    assert report.gap is not None
    assert report.gap.lost < 0.1 * report.gap.prompt
    assert report.total.avoidable == 0


def test_a_prompt_that_stays_and_is_not_read_is_best_effort(tmp_path: Path) -> None:
    report = report_of(write_lines(tmp_path / "log", [chat(number, 0) for number in range(5)]))
    assert list(causes(report)) == [Cause.UNKNOWN]
    assert report.total.avoidable == 0, "an implicit cache promises nothing"


def test_without_what_was_read_nothing_is_said(tmp_path: Path) -> None:
    report = report_of(write_lines(tmp_path / "log", [chat(number, None) for number in range(5)]))
    assert report.gap is None
    assert (report.compared.done, report.compared.held) == (0, 5)


def test_how_many_are_compared(tmp_path: Path) -> None:
    entries = [chat(n, 0, f"It is {n}.\n{RULES}") for n in range(6)]
    log = write_lines(tmp_path / "log", entries)
    report = report_of(log, compare=4)
    assert (report.compared.done, report.compared.held, report.total.judged) == (4, 6, 4)
    assert [(note.kind, note.count) for note in report.notes] == [("not_compared", 2)]
    assert report_of(log, compare=0).gap is None


def test_an_entry_that_has_outlived_itself(tmp_path: Path) -> None:
    def claude(number: int, at: int, read: int, written: int) -> dict[str, Any]:
        marked = [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
        usage = {"input_tokens": 20, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
        body = {"model": "claude-sonnet-5-5", "max_tokens": 5, "system": marked}
        body["messages"] = [{"role": "user", "content": f"Question {number}?"}]
        answer = {"id": f"msg_{number}", "type": "message", "model": "claude-sonnet-5-5", "role": "assistant"}
        return {
            "timestamp": START + at,
            "request": body,
            "response": answer | {"content": [], "usage": usage | {"output_tokens": 5}},
        }

    log = [claude(1, 0, 0, 2600), claude(2, 200, 2600, 0), claude(3, 1000, 0, 2600)]
    found = causes(report_of(write_lines(tmp_path / "log", log)))
    assert list(found) == [Cause.TTL]


def test_what_cant_be_rendered_is_told(tmp_path: Path) -> None:
    broken = chat(1, 0)
    broken["request"]["messages"] = [{"role": "user", "content": [{"type": "text", "text": "a"}]}, 5]
    report = report_of(write_lines(tmp_path / "log", [broken, chat(2, 0)]))
    assert report.total.requests == 2
    assert [(note.kind, note.count) for note in report.notes] == [("unrenderable", 1)]


def test_redacted_words_still_group(tmp_path: Path) -> None:
    entries = [chat(n, 0, f"Secret garden {n}.\n{RULES}") for n in range(4)]
    log = write_lines(tmp_path / "log", entries)
    plain, redacted = report_of(log), report_of(log, redact=True)
    assert "Secret garden" in plain.offenders[0].label
    assert "Secret" not in str(redacted)
    assert [one.tokens for one in plain.offenders] == [one.tokens for one in redacted.offenders]
