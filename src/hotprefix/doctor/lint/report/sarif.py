"""Findings as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from hotprefix import __version__
from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.rule import Language, Rule, rules
from hotprefix.doctor.lint.run import LintReport
from hotprefix.doctor.lint.severity import Severity

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_HOME = "https://github.com/hotprefix/hotprefix"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def sarif_report(report: LintReport, language: Language, root: Path) -> dict[str, Any]:
    """One run. Files are named relative to `root` where they lie below it."""
    known = list(rules().values())
    run = {
        "tool": {"driver": {
            "name": "hotprefix lint",
            "version": __version__,
            "semanticVersion": __version__,
            "informationUri": _HOME,
            "rules": [_rule(rule, language) for rule in known],
        }},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"ROOT": {"uri": root.resolve().as_uri().rstrip("/") + "/"}},
        "language": "zh-CN" if language is Language.CHINESE else "en",
        "invocations": [{"executionSuccessful": report.is_complete}],
        "results": _results(report, known, language, root),
    }  # fmt: skip
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _results(
    report: LintReport, known: Sequence[Rule], language: Language, root: Path
) -> list[dict[str, Any]]:
    numbers = {rule.id: number for number, rule in enumerate(known)}
    return [_result(finding, numbers[finding.rule.id], language, root) for finding in report.findings]


def _rule(rule: Rule, language: Language) -> dict[str, Any]:
    shown = {"text": rule.fix[language].replace("{{", "{").replace("}}", "}")}
    return {
        "id": rule.id,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": rule.name.replace("-", " ")},
        "help": shown,
        "helpUri": f"{_HOME}/blob/main/docs/LINT.md",
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: LintFinding, number: int, language: Language, root: Path) -> dict[str, Any]:
    text = f"{finding.message(language)} {finding.advice(language)}"
    identity = f"{finding.rule.id} {finding.place.path} {finding.words.get('shown', '')}"
    location: dict[str, Any] = {"physicalLocation": _physical(finding, root)}
    if finding.place.path:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.place.path, "kind": "member"}]
    return {
        "ruleId": finding.rule.id,
        "ruleIndex": number,
        "level": _LEVELS[finding.severity],
        "message": {"text": text},
        "locations": [location],
        "occurrenceCount": finding.times,
        "partialFingerprints": {"hotprefix/v1": blake2b(identity.encode(), digest_size=12).hexdigest()},
    }


def _physical(finding: LintFinding, root: Path) -> dict[str, Any]:
    place = finding.place
    physical: dict[str, Any] = {"artifactLocation": _artifact(place.file, root)}
    if place.line:
        physical["region"] = {"startLine": place.line} | (
            {"startColumn": place.column} if place.column else {}
        )
    return physical


def _artifact(file: str, root: Path) -> dict[str, str]:
    path = Path(file).resolve()
    if path.is_relative_to(root.resolve()):
        return {"uri": quote(PurePath(path.relative_to(root.resolve())).as_posix()), "uriBaseId": "ROOT"}
    return {"uri": path.as_uri()}
