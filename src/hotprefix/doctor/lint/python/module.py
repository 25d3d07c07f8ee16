"""A Python file: its text, its imports and its functions."""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from io import StringIO

from hotprefix.doctor.lint.edits import Edit

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")

_NO_WORDS = (
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """`imports` maps local names to full ones (those of the own package begin with dots), `functions` names
    (`Class.method`) to definitions; `file` is empty for the file that is checked, else how it is called."""

    text: str
    tree: ast.Module
    imports: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    classes: Mapping[str, ast.ClassDef] = field(default_factory=dict)
    file: str = ""

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """What each node stands in, by `id`."""
        return {id(child): node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    @cached_property
    def roots(self) -> frozenset[str]:
        """First names of what is imported."""
        return frozenset(full.lstrip(".").split(".", 1)[0] for full in self.imports.values())

    @cached_property
    def lines(self) -> list[str]:
        """The lines, as Python counts them, with their ends."""
        return _LINE.findall(self.text)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for line in self.lines:
            starts.append(starts[-1] + len(line))
        return starts

    def trail(self, node: ast.AST) -> str:
        """The attributes that an expression ends with, whatever stands before them: `messages.create`."""
        names: list[str] = []
        while isinstance(node, ast.Attribute):
            names.append(node.attr)
            node = node.value
        return ".".join(reversed(names))

    def dotted(self, node: ast.AST) -> str:
        """The full name that an expression is, imports resolved (`datetime.datetime.now`), or nothing."""
        if isinstance(node, ast.Name):
            return self.imports.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        if isinstance(node, ast.Call):
            before = self.dotted(node.func)
            return before if before.endswith("Path") else ""
        return ""

    def place(self, node: ast.AST) -> tuple[int, int]:
        """Line and column, in characters, from 1."""
        line = getattr(node, "lineno", 0)
        if not 0 < line <= len(self.lines):
            return line, 0
        return line, self._column(line, getattr(node, "col_offset", 0)) + 1

    def span(self, node: ast.expr) -> tuple[int, int]:
        """Where an expression starts and ends in the text."""
        end_line = node.end_lineno or node.lineno
        start = self._starts[node.lineno - 1] + self._column(node.lineno, node.col_offset)
        return start, self._starts[end_line - 1] + self._column(end_line, node.end_col_offset or 0)

    def code(self, node: ast.expr, most: int = 60) -> str:
        """An expression's source in one line."""
        start, end = self.span(node)
        text = " ".join(self.text[start:end].split())
        return text if len(text) <= most else text[: most - 1] + "…"

    def is_located(self, node: ast.expr) -> bool:
        """Whether the text at an expression's place is it; within f-strings of old Pythons it may not be."""
        start, end = self.span(node)
        try:
            found = ast.parse(self.text[start:end].strip(), mode="eval").body
        except (SyntaxError, ValueError):
            return False
        return ast.dump(found) == ast.dump(node)

    def end_of_arguments(self, node: ast.Call) -> tuple[int, bool]:
        """Where the last argument of a call ends, a comma behind it included, and whether there is one."""
        start, end = self.span(node)
        text = self.text[start:end]
        found = list(tokenize.generate_tokens(StringIO(text, newline="").readline))
        words = [token for token in found if token.type not in _NO_WORDS]
        last = words[-2]  # the one behind it closes the call
        lines = _LINE.findall(text)
        at = start + sum(map(len, lines[: last.end[0] - 1])) + last.end[1]
        return at, last.string == ","

    def wrapped(self, node: ast.expr, before: str, after: str) -> tuple[Edit, ...]:
        """Edits that put text around an expression."""
        start, end = self.span(node)
        return Edit(start, start, before), Edit(end, end, after)

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode("utf-8", "ignore"))


def read_module(text: str, file: str = "") -> Module:
    """Parse a file. Raises `SyntaxError`, `ValueError` for null bytes, `RecursionError`."""
    tree = ast.parse(text)
    imports: dict[str, str] = {}
    functions: dict[str, Function] = {}
    classes: dict[str, ast.ClassDef] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                imports[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom):
            package = "." * node.level + (f"{node.module}." if node.module else "")
            imports |= {alias.asname or alias.name: f"{package}{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ClassDef):
            classes[node.name] = node
            for inner in node.body:
                if isinstance(inner, Function):
                    functions[f"{node.name}.{inner.name}"] = inner
    for inner in _top_level(tree.body):
        if isinstance(inner, Function):
            functions[inner.name] = inner
    return Module(text, tree, imports, functions, classes, file)


def _top_level(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those in its branches included."""
    for statement in body:
        yield statement
        if not isinstance(statement, Function | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                yield from _top_level(getattr(statement, name, ()))
            for handler in getattr(statement, "handlers", ()):
                yield from _top_level(handler.body)
