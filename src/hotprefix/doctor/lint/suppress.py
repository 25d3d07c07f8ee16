"""Comments that say: not here. `# hotprefix: ignore[HP101]`, or without brackets for all rules."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from hotprefix.doctor.lint.finding import LintFinding

_COMMENT = re.compile(r"(?:#|\{#)-?\s*hotprefix:\s*(?P<file>ignore-file|ignore)(?:\[(?P<rules>[\w\s,-]*)\])?")
_ALONE = re.compile(r"^\s*(?:#|\{#)")
_ALL = frozenset(("*",))
_LINE_END = re.compile(r"\r\n|\r|\n")
"""As Python, YAML and Jinja count lines; `splitlines` counts form feeds too."""


class Suppressions:
    """The comments of one file. One counts for its line; one alone on its line for the next line too.

    In Python it counts for the whole statement that it stands on, before or at the end of.
    """

    def __init__(self, text: str, tree: ast.Module | None = None) -> None:
        self._file: frozenset[str] = frozenset()
        self._lines: dict[int, frozenset[str]] = {}
        if "hotprefix:" not in text:
            return
        for number, line in enumerate(_LINE_END.split(text), start=1):
            found = _COMMENT.search(line)
            if found is None:
                continue
            names = _names(found["rules"])
            if found["file"] == "ignore-file":
                self._file |= names
                continue
            for at in (number, number + 1) if _ALONE.match(line) else (number,):
                self._lines[at] = self._lines.get(at, frozenset()) | names
        if tree is not None and self._lines:
            self._spread(_statements(tree))

    def __contains__(self, finding: LintFinding) -> bool:
        named = self._file | self._lines.get(finding.place.line, frozenset())
        return bool(named & {"*", finding.rule.id.lower(), finding.rule.name})

    def _spread(self, statements: Iterable[tuple[int, int]]) -> None:
        for first, last in statements:
            named = self._lines.get(first, frozenset()) | self._lines.get(last, frozenset())
            for line in range(first, last + 1) if named else ():
                self._lines[line] = self._lines.get(line, frozenset()) | named


def _names(rules: str | None) -> frozenset[str]:
    if rules is None:
        return _ALL
    return frozenset(name.strip().lower() for name in rules.split(",") if name.strip())


def _statements(tree: ast.Module) -> list[tuple[int, int]]:
    """First and last lines of statements that hold no others."""
    return [
        (node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body")
    ]
