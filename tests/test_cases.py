"""Every test that a page names is there, and every case has one."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
NAMED = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
CASES = [1, 2, 4, 5, 6, 8, 10, 11, 12, 14, 15, 16, 17, 18, 20, 23, 24, 26, 27, 29, 30, 31, 32, 34, 36]
PAGES = [page for page in sorted(ROOT.glob("docs/*.md")) if NAMED.search(page.read_text(encoding="utf-8"))]


@cache
def functions(path: str) -> frozenset[str]:
    """Names of all functions and methods of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_tests_are_there(page: Path) -> None:
    for path, name in NAMED.findall(page.read_text(encoding="utf-8")):
        assert (ROOT / path).is_file(), path
        assert not name or name in functions(path), f"{path}::{name}"


def test_every_case_has_tests() -> None:
    text = (ROOT / "docs/MISS_REASONS.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| T(\d\d) \|[^|]+\|([^|]+)\|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == CASES
    for number, cell in rows:
        named = NAMED.findall(cell)
        assert named, f"T{number}"
        assert all(name.startswith("test_") for _, name in named), f"T{number}"
