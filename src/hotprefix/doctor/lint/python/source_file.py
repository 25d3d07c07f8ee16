"""Requests in Python files."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hotprefix.doctor.lint.edits import Fix
from hotprefix.doctor.lint.python.library import Library, SourceFiles
from hotprefix.doctor.lint.python.module import Module, read_module
from hotprefix.doctor.lint.python.program import Program
from hotprefix.doctor.lint.python.sinks import Sink
from hotprefix.doctor.lint.python.value import Places, text_of
from hotprefix.doctor.lint.request import LintRequest, Origin, Source
from hotprefix.doctor.lint.suppress import Suppressions
from hotprefix.doctor.lint.unfold import unfold
from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import UnreadableFile
from hotprefix.doctor.recorded import Recorded

_WORTH_READING = re.compile(
    r"role|prompt|instructions|messages|completion|SystemMessage|cache_control|cache_salt|\bsystem(?:\b|_)",
    re.IGNORECASE,
)
_STEP = re.compile(r"(?:\[\d+\]|\.?[^.\[\]]+)$")


def read_python(
    path: Path, known_as: Path, files: SourceFiles, reads_tools_first: Callable[[Recorded], bool]
) -> tuple[Iterable[LintRequest], Suppressions]:
    """The requests that a program makes, and its comments for the linter. Raises `UnreadableFile`.

    What it imports is looked for from where it is known to be; `files` are those of the project.
    """
    try:
        text = _text(path)
        if not _WORTH_READING.search(text):
            return (), Suppressions("")
        module = read_module(text)
        library = Library(files, known_as, lambda *other: Program(*other).begin())
        sinks = Program(module, known_as.absolute(), library).begin().sinks()
    except OSError as error:
        raise UnreadableFile(f"{path} can't be read: {error.strerror or error}") from error
    except SyntaxError as error:
        raise UnreadableFile(
            f"{path}:{error.lineno or 0}:{error.offset or 0} is no Python: {error.msg}"
        ) from error
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise UnreadableFile(f"{path} can't be read as Python: {error}") from error
    return _requests(path, module, sinks, reads_tools_first), Suppressions(text, module.tree)


def _text(path: Path) -> str:
    """In the encoding that the file names, line ends as they are, which count for fixes."""
    with path.open("rb") as stream:
        encoding, _ = tokenize.detect_encoding(stream.readline)
    with path.open(encoding=encoding, newline="") as text:
        return text.read()


def _requests(
    path: Path, module: Module, sinks: Iterable[Sink], reads_tools_first: Callable[[Recorded], bool]
) -> Iterator[LintRequest]:
    for sink in sinks:
        places = Places()
        body = places.json(sink.body, "")
        places.json(sink.headers, "headers")
        line, column = module.place(sink.node)
        place = Place(str(path), line, column)
        if not isinstance(body, Mapping):
            continue
        recorded = Recorded(sink.dialect, body, place, headers=_headers(sink))
        source = CodeSource(module, places, place)
        yield unfold(recorded, Origin.CODE, source, tools_first=reads_tools_first(recorded))


def _headers(sink: Sink) -> dict[str, str]:
    return {name.lower(): text_of(value)[0] for name, value in (sink.headers.members or {}).items()}


class CodeSource(Source):
    """A request in a program: each value is where it is written."""

    def __init__(self, module: Module, places: Places, place: Place) -> None:
        super().__init__(place)
        self._module = module
        self._places = places

    def place(self, path: str, offset: int = 0) -> Place:
        at = path
        while at and at not in self._places.by_path:
            at = _STEP.sub("", at)
        node = self._places.by_path.get(at)
        line, column = self._module.place(node) if isinstance(node, ast.AST) else (0, 0)
        if not line:
            return super().place(path)
        return Place(self._place.file, line, column, path)

    def fix(self, make: Callable[[Any], Fix | None]) -> Fix | None:
        return None
