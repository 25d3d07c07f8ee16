"""Findings as JSON and as GitHub's workflow commands."""

from __future__ import annotations

from typing import Any

from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.report.checklist import checklist
from hotprefix.doctor.lint.rule import Language
from hotprefix.doctor.lint.run import LintReport
from hotprefix.doctor.lint.severity import Severity

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def json_report(report: LintReport, language: Language, *, with_checklist: bool) -> dict[str, Any]:
    """Everything that is known of each finding, and totals."""
    found = report.findings
    counts = {severity.value: sum(one.severity is severity for one in found) for severity in Severity}
    facts: dict[str, Any] = {
        "version": 1,
        "findings": [finding_facts(finding, language) for finding in found],
        "files": len(report.files),
        "requests": report.requests,
        "counts": counts,
    }
    if with_checklist:
        facts["checklist"] = [
            {"question": answer.question.value, "asks": _said(answer.asks, language), "yes": answer.is_yes,
             "rules": sorted({one.rule.id for one in answer.findings})}
            for answer in checklist(found)
        ]  # fmt: skip
    return facts


def finding_facts(finding: LintFinding, language: Language) -> dict[str, Any]:
    """One finding."""
    excerpt = finding.excerpt
    return {
        "rule": finding.rule.id,
        "name": finding.rule.name,
        "severity": finding.severity.value,
        "file": finding.place.file,
        "line": finding.place.line,
        "column": finding.place.column,
        "path": finding.place.path,
        "message": finding.message(language),
        "advice": finding.advice(language),
        "excerpt": excerpt.text[excerpt.start : excerpt.end] if excerpt is not None else None,
        "words": {
            name: word if isinstance(word, int) else _said(word, language)
            for name, word in finding.words.items()
        },
        "observed": finding.is_observed,
        "times": finding.times,
        "fixable": finding.fix is not None,
    }


def github_lines(report: LintReport, language: Language) -> list[str]:
    """A workflow command for each finding, which GitHub shows beside the line of a change."""
    lines = []
    for finding in report.findings:
        place = finding.place
        facts = {"file": place.file, "title": f"{finding.rule.id} {finding.rule.name}"}
        if place.line:
            facts |= {"line": str(place.line)}
        if place.column:
            facts |= {"col": str(place.column)}
        told = ",".join(f"{name}={_property(value)}" for name, value in facts.items())
        text = f"{finding.message(language)} {finding.advice(language)}"
        lines.append(f"::{_LEVELS[finding.severity]} {told}::{_data(text)}")
    return lines


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _said(word: Any, language: Language) -> str:
    return str(getattr(word, language.value, word))
