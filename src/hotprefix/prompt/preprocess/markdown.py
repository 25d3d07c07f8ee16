"""Where a text may be tidied without changing what Markdown, or code in it, means."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_INDENTED = re.compile(r"(?: {4}|\t| {1,3}\t)")
_COLUMNS = re.compile(r"\s*(?:[-=]+[ \t]+)+[-=]+\s*")
_GRID = re.compile(r"\s*\+(?:[-=]+\+)+\s*")
_BACKTICKS = re.compile("`+")
_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_CONFLICT = "======="


def free_spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of what is neither code (fenced, indented, in backticks), nor a line of a table,
    nor front matter, nor the middle line of a merge conflict. Never reaches over a line end."""
    front = _FRONT_MATTER.match(text)
    at = skipped = front.end() if front else 0
    fence = ""
    conflict = False
    for line in text[skipped:].split("\n"):
        start, at = at, at + len(line) + 1
        opening = _FENCE.fullmatch(line)
        if fence:
            if opening and opening[1].startswith(fence) and not opening[2].strip():
                fence = ""
            continue
        if opening and not ("`" in opening[1] and "`" in opening[2]):
            fence = opening[1]
            continue
        if line.startswith("<<<<<<< "):
            conflict = True
        elif line.startswith(">>>>>>> "):
            conflict = False
        elif not (conflict and line == _CONFLICT) and not _is_kept(line):
            yield from _outside_code_spans(line, start)


def _is_kept(line: str) -> bool:
    if _INDENTED.match(line) or "|" in line:
        return True
    return _COLUMNS.fullmatch(line) is not None or _GRID.fullmatch(line) is not None


def _outside_code_spans(line: str, start: int) -> Iterator[tuple[int, int]]:
    at = 0
    for first, last in _code_spans(line):
        yield start + at, start + first
        at = last
    yield start + at, start + len(line)


def _code_spans(line: str) -> Iterator[tuple[int, int]]:
    """From a run of backticks to the next one of the same length.

    Looks at each run once or twice: a client could write lines on which a regular expression takes minutes.
    """
    runs = [found.span() for found in _BACKTICKS.finditer(line)]
    ahead: defaultdict[int, deque[int]] = defaultdict(deque)
    for number, (start, end) in enumerate(runs):
        ahead[end - start].append(number)
    number = 0
    while number < len(runs):
        start, end = runs[number]
        same = ahead[end - start]
        while same and same[0] <= number:
            same.popleft()
        if same:
            number = same[0]
            yield start, runs[number][1]
        number += 1
