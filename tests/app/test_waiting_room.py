"""The address answers from the start, through the change to the real server; Ctrl-C ends it at any time."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import httpx
import pytest

from hotprefix.app.listen import CannotListenError, bind
from hotprefix.app.waiting_room import WaitingRoom


@contextmanager
def loading_server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "tests.app.loading_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def test_nobody_is_turned_away_while_the_server_gets_ready() -> None:
    with loading_server() as (process, url):
        assert httpx.get(f"{url}/readyz").json() == {"status": "starting"}
        assert httpx.get(f"{url}/healthz").json() == {"status": "ok"}
        seen: list[str] = []
        done = threading.Event()

        def probe() -> None:
            while not done.is_set():
                try:
                    seen.append(httpx.get(f"{url}/readyz", timeout=20).json()["status"])
                except httpx.TransportError as error:
                    seen.append(repr(error))

        prober = threading.Thread(target=probe)
        prober.start()
        process.send_signal(signal.SIGUSR1)
        assert process.stdout is not None
        assert " is ready on http://" in process.stdout.readline()
        done.set()
        prober.join()
        assert set(seen) <= {"starting", "warming", "ready"}
        assert httpx.get(f"{url}/readyz").json() == {"status": "ready"}
        body = {"model": "scripted", "messages": [{"role": "user", "content": "x"}]}
        assert httpx.post(f"{url}/v1/chat/completions", json=body).status_code == 200
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (0, "")


def test_ctrl_c_ends_it_while_it_loads() -> None:
    with loading_server() as (process, url):
        assert httpx.get(f"{url}/readyz").status_code == 503
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
        assert (process.returncode, err) == (130, "")
        with pytest.raises(httpx.ConnectError):
            httpx.get(url)


def test_an_address_that_somebody_listens_on_by_now() -> None:
    with closing(bind("127.0.0.1", 0)) as mine, closing(socket.socket()) as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(mine.getsockname())
        other.listen()
        with pytest.raises(CannotListenError, match="is taken"):
            WaitingRoom(mine)
