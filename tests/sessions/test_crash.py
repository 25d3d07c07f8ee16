from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from hotprefix.base.clock import SystemClock
from hotprefix.sessions.store import SESSION_FILE, ResponseStore

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("lines", [1, 40])
def test_what_was_saved_survives_a_killed_process(tmp_path: Path, lines: int) -> None:
    path = tmp_path / SESSION_FILE
    command = [sys.executable, "-m", "tests.sessions.writer", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as writer:
        assert writer.stdout is not None
        told = [writer.stdout.readline().strip() for _ in range(lines)]
        writer.kill()
        told += [line.strip() for line in writer.stdout if line.endswith("\n")]
    assert len(told) >= lines
    with closing(ResponseStore(path, SystemClock())) as store:
        chain = store.chain("t", told[-1])
        assert [one.response_id for one in chain.responses] == told
        # At most one more was saved and not yet told.
        assert store.count()[0] - len(told) in (0, 1)
