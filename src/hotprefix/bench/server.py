"""A `hotprefix serve` process that lives as long as a `with` block."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from hotprefix.base.clock import Clock
from hotprefix.base.errors import HotprefixError

_START_SECONDS = 600
_STOP_SECONDS = 15
_POLL_SECONDS = 0.1
_LAST_LINES = 15


@dataclass(frozen=True, slots=True)
class RunningServer:
    """Where the server listens, and its process."""

    url: str
    pid: int


@contextmanager
def serving(arguments: Sequence[str], log: Path, clock: Clock) -> Iterator[RunningServer]:
    """Start `hotprefix serve` with `arguments` on a free local port and wait until it is ready.

    Its output goes to the file `log`. It is stopped however the block ends; it has its own
    process group, so Ctrl-C reaches only this process, which then stops it in order.
    Raises `HotprefixError` if it ends or isn't ready in ten minutes.
    """
    port = _free_port()
    command = [sys.executable, "-m", "hotprefix", "serve", "--host", "127.0.0.1", "--port", str(port)]
    log.parent.mkdir(parents=True, exist_ok=True)
    process: subprocess.Popen[bytes] | None = None
    with log.open("wb") as output:
        try:
            with signals_held():
                process = subprocess.Popen(
                    [*command, *arguments], stdout=output, stderr=subprocess.STDOUT, start_new_session=True
                )
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(process, url, log, clock)
            yield RunningServer(url, process.pid)
        finally:
            if process is not None:
                _stop(process)


@contextmanager
def signals_held() -> Iterator[None]:
    """SIGINT and SIGTERM that come during the block are delivered after it.

    A process that is being started when its starter is interrupted would be nobody's. Outside the main
    thread signals interrupt nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {
        number: signal.signal(number, lambda number, _frame: came.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for arrived in came:
            signal.raise_signal(arrived)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path, clock: Clock) -> None:
    deadline = clock.now() + _START_SECONDS
    with httpx.Client(base_url=url, timeout=5, trust_env=False) as http:
        while process.poll() is None:
            try:
                if http.get("/readyz").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            if clock.now() > deadline:
                raise HotprefixError(f"The server was not ready in {_START_SECONDS} s; see {log}")
            time.sleep(_POLL_SECONDS)
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
    raise HotprefixError(f"The server ended with code {process.returncode}:\n" + "\n".join(lines))


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
