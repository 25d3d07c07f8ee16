"""What stops a server from starting: one line that says what to do, and a status."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.e2e.server import Server
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
