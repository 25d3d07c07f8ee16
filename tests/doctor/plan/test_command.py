"""`hotprefix plan`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from tests.doctor.plan.test_provider import questions
from tests.doctor.plan.test_service import TUNE, written
from tests.doctor.plan.traces import apps, source_of

RUNNER = CliRunner()
SERVER = ("--computed", "2ms", "--fixed", "10ms", "--answer", "0s", "--bytes-per-token", "1024")


@pytest.fixture
def trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """12 system prompts, 400 requests."""
    monkeypatch.setenv("COLUMNS", "300")
    source_of(tmp_path / "t.jsonl", apps(400))
    return str(tmp_path / "t.jsonl")


def plan(*words: str) -> Result:
    return RUNNER.invoke(build_app(), ["plan", *words], catch_exceptions=False)


def test_a_plan_with_all_its_files(trace: str, tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in ("plan.html", "hpa.yaml", "keda.yaml")}
    found = plan(
        trace, "--qps", "20", "--target-p95", "500ms", *SERVER, "--memory", "1M,8M", "--price-replica", "2",
        "--currency", "EUR", "--html", str(files["plan.html"]), "--hpa", str(files["hpa.yaml"]),
        "--keda", str(files["keda.yaml"]), "--name", "chat",
    )  # fmt: skip
    assert found.exit_code == 0
    assert "20 requests/s with p95 of the time to first token within 500 ms:" in found.output
    assert "EUR an hour" in found.output
    assert "What limits it:" in found.output
    for name in ("hpa.yaml", "keda.yaml"):
        assert yaml.safe_load(files[name].read_text())["metadata"]["name"] == "chat"
    assert files["plan.html"].stat().st_size > 1_000_000


def test_json_from_measurements_and_memory_from_the_trace(trace: str, tmp_path: Path) -> None:
    measured = str(written(tmp_path / "tune.json", TUNE))
    found = plan(
        trace, "--qps", "5", "--target", "800ms", "--measured", measured, "--answer", "1ms", "--json"
    )
    facts = json.loads(found.stdout)
    assert facts["service"]["computed"] == 0.002
    assert facts["bytes_per_token"] == 12_000
    assert len({point["memory"] for point in facts["points"]}) == 5
    assert facts["chosen"]["seconds"] <= 0.8


def test_a_target_that_can_not_be_met_has_a_code_and_a_number(trace: str, tmp_path: Path) -> None:
    rule = tmp_path / "hpa.yaml"
    found = plan(trace, "--qps", "5", "--target-p95", "1ms", *SERVER, "--memory", "8M", "--hpa", str(rule))
    assert found.exit_code == 1
    assert "can't be met" in found.output
    assert "5% of the requests have so much to compute" in found.output
    assert "What can be met: 42" in found.output
    assert not rule.exists()


def test_a_vendor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    source_of(tmp_path / "t.jsonl", questions(30, 60.0))
    words = (str(tmp_path / "t.jsonl"), "--profile", "dashscope-2026-03", "--model", "qwen-plus")
    found = plan(*words)
    assert found.exit_code == 0
    assert "cheapest is explicit, 1 where requests part, 5m" in found.output
    assert json.loads(plan(*words, "--json").stdout)["provider"]["best"]["markers"] == 1


def test_a_rule_that_would_stop_below_the_plan_is_refused(trace: str, tmp_path: Path) -> None:
    words = (
        "--qps",
        "60",
        "--target-p95",
        "500ms",
        *SERVER,
        "--memory",
        "1M",
        "--keda",
        str(tmp_path / "keda"),
    )
    for limits in (("--most-replicas", "1"), ("--least-replicas", "50", "--most-replicas", "40")):
        found = plan(trace, *words, *limits)
        assert (found.exit_code, (tmp_path / "keda").exists()) == (2, False)
        assert "--most-replicas is" in found.stderr
    assert plan(trace, *words, "--least-replicas", "50").exit_code == 0
    assert yaml.safe_load((tmp_path / "keda").read_text())["spec"]["minReplicaCount"] == 50


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--qps", "5", "--target", "1s"), "give --computed"),
        (("--qps", "5", "--target", "1s", "--computed", "1ms"), "--bytes-per-token"),
        (("--qps", "5"), "--target-p95"),
        (("--qps", "5", "--target", "soon"), "is no time"),
        (("--qps", "5", "--target", "1s", *SERVER, "--memory", "lots"), "is no size"),
        (("--qps", "5", "--target", "1s", *SERVER, "--policy", "fifo"), "no policy 'fifo'"),
        (("--qps", "5", "--profile", "dashscope-2026-03"), "--target-p95"),
        (("--profile", "nobody"), "There is no profile"),
    ],
)
def test_what_is_missing_is_told(trace: str, words: tuple[str, ...], told: str) -> None:
    found = plan(trace, *words)
    assert found.exit_code == 2
    assert told in found.stderr
    assert "Traceback" not in found.stderr
