"""Files → findings."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.checks.decode import check_decode
from hotprefix.doctor.lint.checks.markers import check_markers
from hotprefix.doctor.lint.checks.modes import check_modes
from hotprefix.doctor.lint.checks.session import check_session
from hotprefix.doctor.lint.checks.size import check_size
from hotprefix.doctor.lint.checks.volatile import check_schemas, check_volatile
from hotprefix.doctor.lint.context import Context
from hotprefix.doctor.lint.data_file import DATA_SUFFIXES, read_data
from hotprefix.doctor.lint.edits import Fix
from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.jinja_file import JINJA_SUFFIXES, read_jinja
from hotprefix.doctor.lint.measure import RulerBook
from hotprefix.doctor.lint.observe import Observer
from hotprefix.doctor.lint.python.library import SourceFiles
from hotprefix.doctor.lint.python.source_file import read_python
from hotprefix.doctor.lint.request import LintRequest, Origin
from hotprefix.doctor.lint.rule import Language, rules
from hotprefix.doctor.lint.settings import LintSettings
from hotprefix.doctor.lint.severity import Severity
from hotprefix.doctor.lint.suppress import Suppressions
from hotprefix.doctor.lint.vendors import Vendors, reads_tools_first
from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import UnreadableFile
from hotprefix.doctor.recorded import Recorded

SUFFIXES = (".py", *DATA_SUFFIXES, *JINJA_SUFFIXES)
_CHECKS: tuple[Callable[[Context], Iterator[LintFinding]], ...] = (
    check_volatile, check_schemas, check_size, check_markers, check_modes, check_decode, check_session,
)  # fmt: skip
_SHAPES = ("HP101", "HP102", "HP103", "HP104", "HP105")
_NUMBERS = re.compile(r"\[\d+\]|\d")
_DOCUMENTS = (".json", ".yaml", ".yml")
_LOG = ".log"
_MOST_BLANKS, _LONGEST_BLANK = 100, 1 << 16
_OF_REQUESTS = re.compile(r"\b(?:messages|input)\b")
_WITH_THEM = re.compile(
    r"\b(?:model|role|prompt|instructions|previous_response_id)\b|messages[\"']?\s*:\s*(?:\[|\n\s*-)"
)
"""Of which a request has at least one; without both kinds a file is some other program's."""
_UNDECODED = "\ufffd\ufffd"
"""How a file begins that is UTF-16."""
_SKIPPED = ("__pycache__", "node_modules", "site-packages", "venv")


@dataclass(slots=True)
class FileReport:
    """One file's findings, in order of place; `requests` that were found in it; whether it could be read."""

    file: str
    findings: list[LintFinding] = field(default_factory=list)
    requests: int = 0
    is_readable: bool = True


@dataclass(slots=True)
class LintReport:
    """All files'."""

    files: list[FileReport] = field(default_factory=list)

    @property
    def findings(self) -> list[LintFinding]:
        """Those of all files."""
        return [finding for file in self.files for finding in file.findings]

    @property
    def requests(self) -> int:
        """How many requests were looked at."""
        return sum(file.requests for file in self.files)

    def fails(self, at: Severity | None) -> bool:
        """Whether anything is at least that bad; None: never."""
        return at is not None and any(finding.severity.rank >= at.rank for finding in self.findings)

    @property
    def is_complete(self) -> bool:
        """Whether every file could be read."""
        return all(file.is_readable for file in self.files)


class Linter:
    """Checks files with one set of settings."""

    def __init__(self, settings: LintSettings, vendors: Vendors, rulers: RulerBook) -> None:
        self._settings = settings
        self._vendors = vendors
        self._rulers = rulers
        self._sources = SourceFiles()

    def check(self, paths: Iterable[Path]) -> LintReport:
        """Files and folders; in folders, files of the known kinds."""
        return LintReport(_once([self.check_file(path) for path in files_in(paths, self._settings)]))

    def check_file(self, path: Path, known_as: Path | None = None) -> FileReport:
        """One file of a known kind. What can't be read is a finding of its own.

        A copy of a file is `known_as` that file, when it comes to rules that are ignored in some, and to what
        it imports.
        """
        report = FileReport(str(known_as or path))
        try:
            requests, suppressed = self._read(path, known_as or path)
        except (UnreadableFile, OSError) as error:
            report.is_readable = False
            report.findings = [_unreadable(path, str(error))]
            return report
        found = self._findings(path, requests, report)
        wanted = [one for one in found if self._wants(one, path, report.file, suppressed)]
        report.findings = sorted(_merged(wanted), key=_order)
        return report

    def _read(self, path: Path, known_as: Path) -> tuple[Iterable[LintRequest], Suppressions]:
        suffix = path.suffix.lower()
        if suffix in _DOCUMENTS:
            text = path.read_text("utf-8", "replace")
            if not _may_hold_requests(text):
                return (), Suppressions("")  # some other program's settings, in whatever form
            return read_data(path, self._tools_first), Suppressions(text)
        if suffix == _LOG and not _is_of_json(path):
            return (), Suppressions("")
        if suffix in DATA_SUFFIXES:
            return read_data(path, self._tools_first), Suppressions("")
        if suffix in JINJA_SUFFIXES:
            return read_jinja(path), Suppressions(path.read_text("utf-8", "replace"))
        return read_python(path, known_as, self._sources, self._tools_first)

    def _findings(self, path: Path, requests: Iterable[LintRequest], report: FileReport) -> list[LintFinding]:
        observer = Observer()
        found: list[LintFinding] = []
        shapes: Counter[str] = Counter()
        try:
            for request in requests:
                report.requests += 1
                context = self._context(request)
                alone = [finding for check in _CHECKS for finding in check(context)]
                shapes.update({finding.key for finding in alone if _is_shape(finding)})
                found += alone
                if request.origin is Origin.DATA:
                    found += observer.look(context)
        except (UnreadableFile, RecursionError) as error:  # what was found before that stands
            report.is_readable = False
            why = f"{path} is nested too deeply." if isinstance(error, RecursionError) else str(error)
            found.append(_unreadable(path, why))
        found += observer.finish()
        return _proved(found, shapes)

    def _context(self, request: LintRequest) -> Context:
        profile = self._vendors.profile(request.dialect, request.model)
        models = self._vendors.explicit_models(profile, request.model)
        return Context(
            request, profile, models, self._rulers.of(request.model), is_strict=self._settings.is_checklist
        )

    def _tools_first(self, recorded: Recorded) -> bool:
        return reads_tools_first(self._vendors.profile(Dialect(recorded.dialect), recorded.model))

    def _wants(self, finding: LintFinding, path: Path, file: str, suppressed: Suppressions) -> bool:
        if finding.place.file != str(path):  # it comes from a module that the program imports
            file = finding.place.file
            suppressed = self._sources.suppressions(file)
        is_ignored = finding.rule.id in self._settings.ignored_in(file) or finding in suppressed
        return self._settings.runs(finding.rule) and not is_ignored


def files_in(paths: Iterable[Path], settings: LintSettings) -> Iterator[Path]:
    """The files named, and those of known kinds in the folders named, in order; each once."""
    seen: set[Path] = set()
    for path in paths:
        for file in _walk(path) if path.is_dir() else (path,):
            if file not in seen and not settings.excludes(str(file)):
                seen.add(file)
                yield file


def _walk(folder: Path) -> Iterator[Path]:
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise UnreadableFile(f"{folder} can't be read: {error.strerror or error}") from error
    for entry in entries:
        if entry.name.startswith(".") or entry.name in _SKIPPED or entry.is_symlink():
            continue
        if entry.is_dir():
            yield from _walk(entry)
        elif entry.suffix.lower() in SUFFIXES:
            yield entry


def _may_hold_requests(text: str) -> bool:
    if text.startswith(_UNDECODED):
        return True  # nobody can tell, so it is said that it can't be read
    return _OF_REQUESTS.search(text) is not None and _WITH_THEM.search(text) is not None


def _is_of_json(path: Path) -> bool:
    """Whether a log has JSON in its lines, by the first that is not blank; most logs are of plain text."""
    with path.open("rb") as stream:
        lines = (stream.readline(_LONGEST_BLANK).strip() for _ in range(_MOST_BLANKS))
        return next((line for line in lines if line), b"").removeprefix(BOM_UTF8).startswith(b"{")


def _unreadable(path: Path, why: str) -> LintFinding:
    line = re.search(r":(\d+)(?::(\d+))?[: ]", why)
    place = Place(str(path), int(line[1]) if line else 0, int(line[2] or 0) if line else 0)
    rule = rules()["HP901"]
    return LintFinding(rule, place, {"shown": why}, rule.severity)


def _is_shape(finding: LintFinding) -> bool:
    """Whether text only looks as if it might change."""
    return finding.rule.id in _SHAPES and bool(finding.key)


def _proved(found: Sequence[LintFinding], shapes: Mapping[str, int]) -> list[LintFinding]:
    """Without shapes that several requests had in common and no other one had otherwise, as they did not
    change, and without those that were seen to change, as that was told already."""
    told = {one.place.path for one in found if one.is_observed and one.rule.id in ("HP111", "HP113")}
    values: dict[tuple[str, ...], set[str]] = {}
    for one in found:
        if _is_shape(one):
            values.setdefault(_identity(one), set()).add(str(one.words.get("shown")))
    return [
        one
        for one in found
        if not _is_shape(one)
        or (
            (shapes[one.key] < 2 or len(values[_identity(one)]) > 1)
            and not any(one.place.path.startswith(path) for path in told)
        )
    ]


def _merged(found: Iterable[LintFinding]) -> list[LintFinding]:
    """The same thing, found again at the same place in another request, is told once."""
    kept: dict[tuple[str, ...], LintFinding] = {}
    for finding in found:
        key = _identity(finding)
        first = kept.get(key)
        kept[key] = finding if first is None else _together(first, finding)
    return list(kept.values())


def _once(reports: list[FileReport]) -> list[FileReport]:
    """Without what several programs have in common that import it: the worst of it is told, and told once."""
    worst: dict[tuple[str, str, int, int], tuple[int, int, int]] = {}
    for number, report in enumerate(reports):
        for finding in report.findings:
            key, rank = _source_place(finding), (finding.severity.rank, _lost(finding), -number)
            worst[key] = max(rank, worst.get(key, rank))
    for number, report in enumerate(reports):
        report.findings = [one for one in report.findings if worst[_source_place(one)][2] == -number]
    return reports


def _source_place(finding: LintFinding) -> tuple[str, str, int, int]:
    place = finding.place
    return finding.rule.id, place.file, place.line, place.column


def _lost(finding: LintFinding) -> int:
    lost = finding.words.get("lost")
    return lost if isinstance(lost, int) else 0


def _identity(finding: LintFinding) -> tuple[str, ...]:
    place = finding.place
    if finding.is_observed or _is_shape(finding):
        detail = str(finding.words.get("detail", finding.words.get("shown", "")))
        return finding.rule.id, _NUMBERS.sub("#", place.path), _NUMBERS.sub("#", detail)
    if place.line:
        return finding.rule.id, str(place.line), str(place.column)
    return finding.rule.id, place.path, finding.message(Language.ENGLISH)


def _together(first: LintFinding, again: LintFinding) -> LintFinding:
    """One finding for both, as bad as the worse of them, with the fixes of both."""
    worse = again if again.severity.rank > first.severity.rank else first
    edits = dict.fromkeys(edit for one in (first, again) if one.fix is not None for edit in one.fix.edits)
    fix = Fix(tuple(edits)) if edits else None
    return replace(worse, place=first.place, times=first.times + again.times, fix=fix)


def _order(finding: LintFinding) -> tuple[int, int, str]:
    return finding.place.line, finding.place.column, finding.rule.id
