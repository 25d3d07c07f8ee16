"""Starting: what is answered meanwhile, and what stops it, in one line that says what to do."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import httpx
import pytest

from tests.e2e.server import Server, until
from tests.tiny_gguf import write_tiny_gguf

pytestmark = pytest.mark.model


def refused(*options: str) -> str:
    """The one line on stderr of a server that does not start."""
    command = [sys.executable, "-m", "hotprefix", "serve", "--port", "0", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("Error: ")
    return line


def test_a_port_that_is_taken(server: Server) -> None:
    port = server.address[1]
    assert f"Port {port} on 127.0.0.1 is taken; choose another with --port." in refused("--port", str(port))


@pytest.mark.parametrize(
    ("write", "complaint"),
    [
        (lambda path: None, "it is no path, and the known names are"),
        (lambda path: path.write_bytes(b""), "is not a GGUF file"),
        (lambda path: path.write_bytes(os.urandom(100_000)), "is not a GGUF file"),
        (
            lambda path: path.write_bytes(b"GGUF\x03\x00\x00\x00" + Random(1).randbytes(100_000)),
            "is truncated",
        ),
        (lambda path: path.write_bytes(write_tiny_gguf(path).read_bytes()[:-100]), "is truncated"),
        (lambda path: path.mkdir(), "is no model folder"),
    ],
    ids=["missing", "empty", "random", "random with magic", "truncated", "folder"],
)
def test_a_model_that_is_none(tmp_path: Path, write: Callable[[Path], object], complaint: str) -> None:
    path = tmp_path / "model.gguf"
    write(path)
    line = refused("--model", str(path), "--state-dir", str(tmp_path / "state"))
    assert str(path) in line
    assert complaint in line


def test_a_state_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert str(tmp_path / "file") in refused("--state-dir", str(tmp_path / "file" / "below"))


@contextmanager
def starting(folder: Path) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """A server that answers already, and loads."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "hotprefix", "serve", "--port", str(port), "--state-dir", str(folder)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        try:
            until(lambda: answers(client) or process.poll() is not None, lambda: "no answer")
            yield process, client
        finally:
            process.kill()


def answers(client: httpx.Client) -> bool:
    try:
        return client.get("/healthz").json() == {"status": "ok"}
    except httpx.TransportError:
        return False


def test_clients_are_told_to_wait_while_the_model_loads(tmp_path: Path) -> None:
    with starting(tmp_path) as (process, client):
        assert client.get("/readyz").json() == {"status": "starting"}
        refused = client.post("/v1/chat/completions", json={"model": "x", "messages": []})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "starting")
        assert process.stdout is not None
        assert " is ready on http://" in process.stdout.readline()
        assert client.get("/readyz").json() == {"status": "ready"}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_ctrl_c_while_the_model_loads(tmp_path: Path) -> None:
    with starting(tmp_path) as (process, client):
        assert client.get("/readyz").json() == {"status": "starting"}
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out) == (130, "")
        assert "Traceback" not in err
