"""`hotprefix report` as it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from tests.doctor.report.logs import SAMPLES, chat_answer, write_lines

CHAT = str(SAMPLES / "openai-chat.jsonl")


def report(*options: str) -> Result:
    return CliRunner().invoke(build_app(), ["report", *options], catch_exceptions=False)


def test_the_terminal_view() -> None:
    result = report(CHAT)
    assert result.exit_code == 0
    assert "Hit rate, in tokens" in result.output
    assert "54.9%" in result.output, "3,840 of 7,000"


def test_chinese() -> None:
    assert "命中率" in report(CHAT, "--lang", "zh").output


def test_json_by_chosen_dimensions_and_spans(tmp_path: Path) -> None:
    told = json.loads(
        report(
            CHAT, "--format", "json", "--by", "scene", "--by", "model", "--top", "1",
            "--since", "2026-09-21T14:14:00", "--until", "2026-09-21T14:16:00Z",
        ).output
    )  # fmt: skip
    assert list(told["groups"]) == ["scene", "model"]
    assert (told["total"]["requests"], told["total"]["prompt"]) == (2, 4016)
    assert told["hidden"] == {"scene": 1, "model": 0}
    assert told["total"]["written"] is None
    assert json.loads(report(CHAT, "-f", "json", "--tenant", "beta").output)["total"]["requests"] == 1
    both = report(CHAT, "-f", "json", "--scene", "desk@1", "--scene", "desk@2").output
    assert json.loads(both)["total"]["requests"] == 3


def test_a_page_in_a_file(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    result = report(CHAT, "--format", "html", "--lang", "zh", "-o", str(page))
    assert result.exit_code == 0
    assert page.read_text(encoding="utf-8").startswith(
        '<!doctype html>\n<html lang="zh-CN" data-language="zh">'
    )
    text = tmp_path / "report.txt"
    assert report(CHAT, "-o", str(text)).exit_code == 0
    assert "Hit rate" in text.read_text(encoding="utf-8")


def test_a_hit_rate_that_is_asked_for() -> None:
    assert report(CHAT, "--min-hit-rate", "0.5").exit_code == 0
    result = report(CHAT, "--min-hit-rate", "0.6")
    assert result.exit_code == 1
    assert "below 60.0%" in result.stderr


def test_a_hit_rate_that_nobody_reports_is_not_reached(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "log", [chat_answer(1, 100, None)])
    result = report(str(log), "--min-hit-rate", "0.1")
    assert result.exit_code == 1
    assert "not reported" in result.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["none.jsonl"], "There is no file none.jsonl"),
        ([CHAT, "--profile", "none"], "There is no profile 'none'"),
        ([CHAT, "--until", "2020-01-01"], "There is no call to count"),
        (["mysql://here"], "There is no file"),
        ([CHAT, "--model", "none"], "No prepared model 'none'"),
    ],
)
def test_trouble_is_told_and_is_no_verdict(options: list[str], told: str) -> None:
    result = report(*options)
    assert result.exit_code == 2
    assert told in result.stderr


def test_lines_are_named(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text(json.dumps(chat_answer(1, 5, 0)) + "\n{oops\n{}\n")
    result = report(str(tmp_path / "log.jsonl"))
    assert result.exit_code == 2
    assert "log.jsonl:2:2 is no JSON" in result.stderr
