"""Servers as child processes: ready, stopped, and clear when they can't start."""

from __future__ import annotations

import signal
from pathlib import Path

import httpx
import psutil
import pytest

from hotprefix.base.clock import SystemClock
from hotprefix.base.errors import HotprefixError
from hotprefix.bench.server import serving, signals_held
from hotprefix.models.manifest import ModelManifest


def test_a_server_that_can_not_start_says_why(tmp_path: Path) -> None:
    log = tmp_path / "deep" / "server.log"
    with (
        pytest.raises(HotprefixError, match="ended with code 1") as caught,
        serving(["--model", str(tmp_path / "nothing.gguf")], log, SystemClock()),
    ):
        pytest.fail("the server can't have started")
    assert "nothing.gguf" in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_a_server_is_ready_inside_and_gone_outside(tiny_model: ModelManifest, tmp_path: Path) -> None:
    options = ["--model", str(tiny_model.folder), "--kv-arena", "16M"]
    with (
        pytest.raises(RuntimeError, match="stop here"),
        serving(options, tmp_path / "server.log", SystemClock()) as server,
    ):
        assert httpx.get(f"{server.url}/readyz", trust_env=False).status_code == 200
        process = psutil.Process(server.pid)
        assert process.is_running()
        raise RuntimeError("stop here")
    assert not process.is_running()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait_until_a_process_is_known(number: int) -> None:
    came: list[str] = []
    before = signal.signal(number, lambda *_: came.append("delivered"))
    try:
        with signals_held():
            signal.raise_signal(number)
            came.append("the block goes on")
        assert came == ["the block goes on", "delivered"]
    finally:
        signal.signal(number, before)
