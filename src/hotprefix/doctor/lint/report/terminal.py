"""Findings for people at a terminal: the place, what is wrong, the text itself, what to do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hotprefix.doctor.lint.finding import Excerpt, LintFinding
from hotprefix.doctor.lint.phrase import Phrase
from hotprefix.doctor.lint.report.checklist import checklist
from hotprefix.doctor.lint.rule import Language
from hotprefix.doctor.lint.run import LintReport
from hotprefix.doctor.lint.severity import Severity

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_NAMES = {
    Severity.ERROR: Phrase("error", "错误"),
    Severity.WARNING: Phrase("warning", "警告"),
    Severity.INFO: Phrase("info", "提示"),
}
_FILE, _REQUEST = Phrase("file", "个文件"), Phrase("request", "个请求")
_MOST_ALIKE = 5
"""Findings of one rule in one file that are shown; more are counted."""
_WIDEST = 110
_AROUND = 40


def show(report: LintReport, out: Console, language: Language, *, with_checklist: bool) -> None:
    """All findings, then how many there are."""
    shown: Counter[tuple[str, str]] = Counter()
    lines = _Lines()
    for finding in report.findings:
        key = (finding.place.file, finding.rule.id)
        shown[key] += 1
        if shown[key] <= _MOST_ALIKE:
            _show_finding(finding, out, language, lines)
    for (file, rule), count in shown.items():
        if count > _MOST_ALIKE:
            more = count - _MOST_ALIKE
            out.print(
                _said(Phrase(f"{file}: {more:,} more of {rule}", f"{file}:另有 {more:,} 处 {rule}"), language)
            )
    if with_checklist:
        _show_checklist(report, out, language)
    out.print(_summary(report, language))


def _show_finding(finding: LintFinding, out: Console, language: Language, files: _Lines) -> None:
    head = Text()
    head.append(str(finding.place), "bold")
    head.append(f"  {finding.rule.id} {finding.rule.name}", "dim")
    head.append(f"  {_said(_NAMES[finding.severity], language)}", _STYLES[finding.severity])
    if finding.times > 1:
        head.append(f"  ×{finding.times:,}", "dim")
    out.print(head, soft_wrap=True)
    out.print(Text("  " + _visible(finding.message(language))))
    excerpt = finding.excerpt or _source_line(finding, files)
    if excerpt is not None:
        out.print(_quoted(excerpt), soft_wrap=True)
    advice = Text()
    advice.append("  → ", _STYLES[finding.severity])
    advice.append(finding.advice(language))
    out.print(advice)
    out.print()


def _quoted(excerpt: Excerpt) -> Text:
    """The line with the offending part marked; control characters can't reach the terminal."""
    before, inside, after = (
        _visible(part)
        for part in (
            excerpt.text[: excerpt.start],
            excerpt.text[excerpt.start : excerpt.end],
            excerpt.text[excerpt.end :],
        )
    )
    line = Text()
    line.append("  │ ", "dim")
    line.append(before)
    line.append(inside, "bold reverse")
    line.append(after)
    return line


def _source_line(finding: LintFinding, files: _Lines) -> Excerpt | None:
    """The line of the file, for what has no excerpt of its own."""
    place = finding.place
    lines = files[place.file]
    if not 0 < place.line <= len(lines):
        return None
    line = lines[place.line - 1]
    start = min(max(0, place.column - 1), len(line))
    shown = str(finding.words.get("shown", ""))
    end = start + len(shown) if shown and line.startswith(shown, start) else start
    left = max(0, start - _AROUND) if len(line) > _WIDEST else len(line) - len(line.lstrip())
    return Excerpt(line[left : left + _WIDEST], max(0, start - left), max(0, end - left))


class _Lines(dict[str, list[str]]):
    """The lines of files, read when first asked for."""

    def __missing__(self, file: str) -> list[str]:
        try:
            found = Path(file).read_text(encoding="utf-8-sig", errors="replace").split("\n")
        except OSError:
            found = []
        self[file] = found
        return found


def _show_checklist(report: LintReport, out: Console, language: Language) -> None:
    for answer in checklist(report.findings):
        line = Text()
        line.append(*(("  ✓ ", "green") if answer.is_yes else ("  ✗ ", "bold red")))
        line.append(_said(answer.asks, language))
        if not answer.is_yes:
            line.append("  " + ", ".join(sorted({one.rule.id for one in answer.findings})), "dim")
        out.print(line)
    out.print()


def _summary(report: LintReport, language: Language) -> Text:
    found = report.findings
    counts = Counter(finding.severity for finding in found)
    fixes = sum(finding.fix is not None for finding in found)
    files, requests = len(report.files), report.requests
    parts = [_number(counts[one], _NAMES[one], language) for one in reversed(Severity) if counts[one]]
    what = ", ".join(parts) or _said(Phrase("nothing found", "未发现问题"), language)
    where = Phrase(
        f" in {_number(files, _FILE, language)}, {_number(requests, _REQUEST, language)}.",
        f",共 {files:,} 个文件、{requests:,} 个请求。",
    )
    style = _STYLES[max(counts, key=lambda one: one.rank)] if counts else "green"
    line = Text()
    line.append(what + _said(where, language), style)
    if fixes:
        can = Phrase(f" {fixes:,} can be fixed with --fix.", f"其中 {fixes:,} 处可用 --fix 修复。")
        line.append(_said(can, language))
    return line


def _number(count: int, what: Phrase, language: Language) -> str:
    plural = "s" if count != 1 and language is Language.ENGLISH and what.en != "info" else ""
    return f"{count:,} {_said(what, language)}{plural}"


def _visible(text: str) -> str:
    return "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in text)


def _said(phrase: Phrase, language: Language) -> str:
    return phrase.zh if language is Language.CHINESE else phrase.en
