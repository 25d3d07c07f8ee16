"""The example workflow calls the gate as it is."""

from __future__ import annotations

import shlex
from pathlib import Path

import typer
import yaml

from hotprefix.app.cli import build_app

ROOT = Path(__file__).resolve().parents[3]


def test_the_workflow_names_real_options() -> None:
    workflow = yaml.safe_load((ROOT / "examples/ci/prompt-gate.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["gate"]["steps"]
    call = shlex.split(next(step["run"] for step in steps if "hotprefix gate" in step.get("run", "")))
    command = getattr(typer.main.get_command(build_app()), "commands")["gate"]  # noqa: B009
    context = command.make_context(
        "gate", [word for word in call[2:] if word not in ("prompts/contexts.jsonl", "--context")]
    )
    assert context.params["base"] == "origin/${{ github.base_ref }}"
    assert context.params["limit"] == 0.02
    assert context.params["form"] == "github"
    checkout = next(step for step in steps if "checkout" in step.get("uses", ""))
    assert checkout["with"]["fetch-depth"] == 0
