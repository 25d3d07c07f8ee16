"""docs/EXPLAIN.md names a test for every case that it lists, and they are there."""

from __future__ import annotations

import re

from tests.test_cases import NAMED, ROOT, functions

CASES = [1, 2, 4, 5, 6, 8, 10, 11, 12, 14, 15, 16, 17, 18, 20, 23, 24, 26, 27, 30, 32]


def test_every_case_names_tests_that_are_there() -> None:
    text = (ROOT / "docs/EXPLAIN.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| T(\d\d) \|[^|]+\|([^|]+)\|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == CASES
    for number, cell in rows:
        named = NAMED.findall(cell)
        assert named, f"T{number}"
        for path, name in named:
            assert name in functions(path), f"{path}::{name}"
