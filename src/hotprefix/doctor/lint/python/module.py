"""A Python file: its text, its imports and its functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from hotprefix.doctor.lint.edits import Edit

_LINE = re.compile(r"[^\n]*\n|[^\n]+")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """`imports` maps local names to full ones, `functions` names (`Class.method`) to definitions."""

    text: str
    tree: ast.Module
    imports: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)

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

    def wrapped(self, node: ast.expr, before: str, after: str) -> tuple[Edit, ...]:
        """Edits that put text around an expression."""
        start, end = self.span(node)
        return Edit(start, start, before), Edit(end, end, after)

    def _column(self, line: int, offset: int) -> int:
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode("utf-8", "ignore"))


def read_module(text: str) -> Module:
    """Parse a file. Raises `SyntaxError`, `ValueError` for null bytes, `RecursionError`."""
    tree = ast.parse(text)
    imports: dict[str, str] = {}
    functions: dict[str, Function] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                imports[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                imports[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, Function):
                    functions[f"{node.name}.{inner.name}"] = inner
    for inner in tree.body:
        if isinstance(inner, Function):
            functions[inner.name] = inner
    return Module(text, tree, imports, functions)
