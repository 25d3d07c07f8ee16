"""Requests in JSON, JSONL and YAML files, with the places of their values."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from hotprefix.doctor.lint.edits import Fix
from hotprefix.doctor.lint.json_fixes import Tree
from hotprefix.doctor.lint.request import LintRequest, Origin, Source
from hotprefix.doctor.lint.spans import NotJson, SpanNode, find, index_in, json_spans, yaml_spans
from hotprefix.doctor.lint.unfold import unfold
from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import read_documents, recorded_of
from hotprefix.doctor.recorded import Recorded

DATA_SUFFIXES = (".json", ".jsonl", ".ndjson", ".log", ".yaml", ".yml")
_LINES = (".jsonl", ".ndjson", ".log")
_YAML = (".yaml", ".yml")
_DEEPEST = 3
_KEPT_TREES = 64
_LINE_END = re.compile("\n")

ToolOrder = Callable[[Recorded], bool]
"""Whether the model of a request reads its tools first."""


def read_data(path: Path, reads_tools_first: ToolOrder) -> Iterator[LintRequest]:
    """The requests of a file; what is no request is passed over. Raises `UnreadableFile`."""
    file = DataFile(path)
    for number, (line, document) in enumerate(read_documents(path)):
        recorded = recorded_of(document, Place(str(path), line))
        if recorded is None:
            continue
        prefix = _prefix_of(document, recorded.body, "", 0)
        source = DataSource(file, number, recorded.place, prefix)
        yield unfold(recorded, Origin.DATA, source, tools_first=reads_tools_first(recorded))


class DataFile:
    """A file's text and the positions in it, read when first asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._trees: dict[int, SpanNode | None] = {}  # of a long log only those that were asked for last

    @cached_property
    def text(self) -> str:
        """As it is, line ends included."""
        with self._path.open(encoding="utf-8", newline="") as stream:
            return stream.read()

    def tree(self, number: int, line: int) -> SpanNode | None:
        """The document of that number, which begins at that line; None if it can't be found."""
        key = line if self._is_lines else number
        if key not in self._trees:
            if self._is_lines and len(self._trees) >= _KEPT_TREES:
                self._trees.pop(next(iter(self._trees)))
            try:
                self._trees[key] = self._read(number, line)
            except (NotJson, ValueError, RecursionError, yaml.YAMLError):
                self._trees[key] = None
        return self._trees[key]

    def line_and_column(self, index: int) -> tuple[int, int]:
        """From 1."""
        line = bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in _LINE_END.finditer(self.text))]

    @cached_property
    def _whole(self) -> SpanNode | None:
        try:
            root = json_spans(self.text)
        except (NotJson, ValueError, RecursionError):
            return None
        return root if not self.text[root.end :].strip() else None

    @cached_property
    def _is_lines(self) -> bool:
        suffix = self._path.suffix.lower()
        return suffix in _LINES or (suffix not in _YAML and self._whole is None)

    def _read(self, number: int, line: int) -> SpanNode | None:
        if self._is_lines:
            return json_spans(self.text, self._starts[line - 1])
        if self._path.suffix.lower() in _YAML:
            for count, tree in enumerate(yaml_spans(self.text)):
                self._trees.setdefault(count, tree)
            return self._trees.get(number)
        whole = self._whole
        if whole is not None and whole.items:
            return whole.items[number]
        return whole


class DataSource(Source):
    """A request in a file; `prefix` leads from the document to the body, None if it is within a string."""

    def __init__(self, file: DataFile, number: int, place: Place, prefix: str | None) -> None:
        super().__init__(place)
        self._file = file
        self._number = number
        self._prefix = prefix

    def place(self, path: str, offset: int = 0) -> Place:
        document = self._file.tree(self._number, self._place.line)
        if document is None:
            return super().place(path)
        node = self._find(document, path) or document
        index = index_in(node, self._file.text, offset)
        line, column = self._file.line_and_column(index)
        return Place(self._place.file, line, column, path)

    def fix(self, make: Callable[[Any], Fix | None]) -> Fix | None:
        document = self._file.tree(self._number, self._place.line)
        root = find(document, self._prefix) if document is not None and self._prefix is not None else None
        return make(Tree(self._file.text, root)) if root is not None else None

    def _find(self, document: SpanNode, path: str) -> SpanNode | None:
        """In the body, else in what was recorded around it."""
        root = find(document, self._prefix) if self._prefix is not None else None
        if root is None:
            return find(document, path)
        return find(root, path) or find(document, path) or root


def _prefix_of(document: Any, body: Mapping[str, Any], path: str, depth: int) -> str | None:
    if document is body:
        return path
    if isinstance(document, Mapping) and depth < _DEEPEST:
        for key, value in document.items():
            found = _prefix_of(value, body, f"{path}.{key}" if path else str(key), depth + 1)
            if found is not None:
                return found
    return None
