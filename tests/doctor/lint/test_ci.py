"""The hooks, the workflow and the action call the linter as it is; the page names a test for every case."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import typer
import yaml

from hotprefix.app.cli import build_app
from hotprefix.doctor.lint.run import SUFFIXES

ROOT = Path(__file__).resolve().parents[3]
CASES = [1, 2, 4, 5, 6, 8, 10, 11, 12, 14, 15, 16, 17, 18, 20, 23, 24]


def options_of(call: str) -> dict[str, Any]:
    """What the command makes of a call; it fails for options that do not exist."""
    command = getattr(typer.main.get_command(build_app()), "commands")["lint"]  # noqa: B009
    words = shlex.split(call)
    assert words[:2] == ["hotprefix", "lint"]
    return dict(command.make_context("lint", words[2:]).params)


def test_hooks() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert [options_of(hook["entry"])["fix"] for hook in hooks] == [False, True]
    for hook in hooks:
        assert all(re.search(hook["files"], f"a/b{suffix}") for suffix in SUFFIXES if suffix != ".log")
        assert not re.search(hook["files"], "README.md")
    config = yaml.safe_load((ROOT / "examples/ci/pre-commit-config.yaml").read_text(encoding="utf-8"))
    used = config["repos"][0]["hooks"][0]
    assert used["id"] in {hook["id"] for hook in hooks}
    assert options_of(shlex.join(["hotprefix", "lint", *used["args"], "a.py"]))["fail_on"] == "warning"


def test_workflow() -> None:
    workflow = yaml.safe_load((ROOT / "examples/ci/prompt-lint.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["lint"]["steps"]
    calls = [options_of(step["run"]) for step in steps if "hotprefix lint" in step.get("run", "")]
    assert [(call["output_format"], call["fail_on"]) for call in calls] == [
        ("sarif", "never"),
        ("github", "warning"),
    ]
    upload = next(step for step in steps if "upload-sarif" in step.get("uses", ""))
    assert upload["with"]["sarif_file"] == str(calls[0]["output"])
    assert workflow["permissions"]["security-events"] == "write"


def test_action() -> None:
    action = yaml.safe_load((ROOT / "examples/ci/lint-action/action.yml").read_text(encoding="utf-8"))
    step = action["runs"]["steps"][-1]
    call = step["run"]
    for name, value in step["env"].items():
        default = action["inputs"][re.findall(r"inputs\.([\w-]+)", value)[0]]["default"]
        call = call.replace(f"${name}", default)
    assert options_of(call)["profile"] == "auto"
    assert "${{" not in step["run"]


def test_every_case_has_tests() -> None:
    text = (ROOT / "docs" / "LINT.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| T(\d\d) \|[^|]+\|([^|]+)\|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == CASES
    source = (Path(__file__).parent / "test_cases.py").read_text(encoding="utf-8")
    for number, cell in rows:
        named = re.findall(r"`tests/doctor/lint/test_cases\.py::(\w+)`", cell)
        assert named, number
        assert all(f"def {name}(" in source and name.startswith(f"test_t{number}_") for name in named)
    assert len(re.findall(r"^def test_t\d\d_", source, re.MULTILINE)) == sum(
        row[1].count("::") for row in rows
    )
