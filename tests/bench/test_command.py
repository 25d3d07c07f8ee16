"""`hotprefix bench` as people run it, on the default model."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from hotprefix.bench.command import bench_app
from hotprefix.models.manifest import ModelManifest

BENCH = [sys.executable, "-m", "hotprefix", "bench"]


def test_one_url_alone_is_refused() -> None:
    result = CliRunner().invoke(bench_app, ["--url", "http://127.0.0.1:9"])
    assert result.exit_code == 2
    assert "--plain-url" in result.output


@pytest.mark.model
@pytest.mark.slow
def test_quick_run_measures_everything(default_model: ModelManifest, tmp_path: Path) -> None:
    command = [*BENCH, "--quick", "--no-peer", "--model", default_model.name, "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    findings = {f["name"]: f for f in json.loads((tmp_path / "bench.json").read_bytes())["findings"]}
    assert list(findings) == ["prefix", "conversation", "concurrent", "short"]
    for finding in findings.values():
        assert (tmp_path / f"bench-{finding['name']}.png").exists()
        assert all(target["met"] is None for target in finding["targets"])
        assert all(value > 0 for m in finding["measures"] if m["unit"] == "s" for value in m["values"])
    facts = findings["prefix"]["facts"]
    reused = {name.split(",")[1].split()[0]: value for name, value in facts.items()}
    assert reused == {"miss": 0, "hit": 256, "repeat": 286}
    conversation = findings["conversation"]["facts"]
    assert 256 + 30 <= conversation["prompt tokens of the first turn, template included"] <= 256 + 30 + 40
    assert conversation["tokens from the cache, share"] > 0.5
    assert (tmp_path / "bench.html").stat().st_size > 1_000_000


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_stops_the_servers(number: int, default_model: ModelManifest, tmp_path: Path) -> None:
    command = [*BENCH, "--quick", "--no-peer", "--model", default_model.name, "--out", str(tmp_path)]
    with (tmp_path / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            servers = _children_serving(process, tmp_path)
            process.send_signal(number)
            code = process.wait(60)
        finally:
            process.kill()
    text = (tmp_path / "output").read_text(encoding="utf-8")
    assert code == 130
    assert "Stopped" in text
    assert "Traceback" not in text
    assert servers
    assert not any(server.is_running() for server in servers)


def _children_serving(process: subprocess.Popen[bytes], folder: Path) -> list[psutil.Process]:
    """The servers, as soon as the second one is being started."""
    deadline = time.monotonic() + 120
    while not (folder / "server-plain.log").exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return psutil.Process(process.pid).children()
