"""The layout keeps its promises: import order, sizes, no singletons, docs that name real tests."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "hotprefix"
ROOMS = (
    "base", "profiles", "keys", "models", "prompt", "kv", "traces", "pages", "tiers", "cache",
    "diagnosis", "modes", "ledger", "sessions", "tenants", "engine", "quality",
    "tune", "api", "doctor", "app", "bench",
)  # fmt: skip
"""A room imports only itself and rooms before it, except that `app` registers `bench`."""
OPENVINO_ROOMS = {"engine", "models", "quality", "tune", "bench"}
MOST_LINES = 400
MOST_FUNCTION_LINES = 60
MOST_PARAMETERS = 8

FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str | None:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else None


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_file(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    check_imports(path, tree)
    assert len(text.splitlines()) <= MOST_LINES, "split the file: one noun each"
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            check_function(path, node)
    assert ast.get_docstring(tree) or not text.strip(), "say in one line what the file is for"


def check_imports(path: Path, tree: ast.Module) -> None:
    room = room_of(path)
    if room is None:
        return
    assert room in ROOMS, f"{room} is no known room"
    for name in imported(tree):
        top, _, rest = name.partition(".")
        other = rest.partition(".")[0]
        if top == "hotprefix" and other in ROOMS and (room, other) != ("app", "bench"):
            assert ROOMS.index(other) <= ROOMS.index(room), f"{room} must not import {other}"
        if top in ("openvino", "openvino_genai"):
            assert room in OPENVINO_ROOMS, f"{room} knows nothing of OpenVINO"
        if top in ("starlette", "uvicorn", "fastapi"):
            assert room in ("api", "app"), f"{room} knows nothing of HTTP"
        if top == "time":
            assert room in ("base", "app", "bench"), "time comes from the injected clock"


def check_function(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
    # A signature of many options is a table, not length.
    lines = (node.end_lineno or node.lineno) - node.body[0].lineno + 1
    arguments = node.args
    count = len(arguments.args) + len(arguments.kwonlyargs) + len(arguments.posonlyargs)
    assert lines <= MOST_FUNCTION_LINES, f"{node.name} has {lines} lines"
    # The command line's functions have one parameter for each option.
    if room_of(path) not in ("app", "bench"):
        assert count <= MOST_PARAMETERS, f"{node.name} has {count} parameters"


def test_no_module_reads_the_environment_when_imported() -> None:
    for path in FILES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                assert "os.environ" not in ast.unparse(node) or isinstance(
                    node, ast.Import | ast.ImportFrom
                ), path


def test_every_invariant_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "INVARIANTS.md").read_text(encoding="utf-8")
    numbers = re.findall(r"(?m)^\| I(\d+) \|", text)
    assert numbers == [str(number) for number in range(1, len(numbers) + 1)]
    references = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", text)
    assert references
    for file, name in references:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert not name or re.search(rf"\b(def|class) {name}\b", source), f"{file} has no {name}"


def test_the_table_of_rooms_has_all_of_them_in_order() -> None:
    text = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"(?m)^\| `(\w+)` \|", text)) == ROOMS
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} == set(ROOMS)
