"""Recording what a server is asked: what is read again is what was written, whatever the file was before."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hotprefix.base.ids import BlockKey
from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.recording import TraceRecording
from hotprefix.traces.source import TraceSource

KEYS = [BlockKey(bytes([number]) * 32) for number in range(4)]


@contextmanager
def recording(path: Path, block: int = 32, told: list[str] | None = None) -> Iterator[TraceRecording]:
    with closing(TraceRecording(path, block, (told if told is not None else []).append)) as opened:
        yield opened


def inputs(path: Path) -> Sequence[int]:
    return [request.input for request in TraceSource([path]).requests()]


def test_what_is_recorded_is_read(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "trace.jsonl"
    with recording(path) as record:
        record.write(1.0, "a", KEYS[:2], (70, 5))
        record.write(2.0, "a", [KEYS[0], KEYS[2]], (71, 5))
        record.write(3.0, "b", KEYS[:2], (72, 5))
    found = list(TraceSource([path]).requests())
    assert [(one.scope, one.known, one.input, one.output) for one in found] == [
        ("a", 0, 70, 5),
        ("a", 1, 71, 5),
        ("b", 0, 72, 5),
    ]


def test_a_trace_is_continued(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for count in (64, 65):
        with recording(path) as record:
            record.write(float(count), "a", KEYS[:2], (count, 1))
    assert inputs(path) == [64, 65]


@pytest.mark.parametrize("lost", [1, 2, 40])
def test_a_line_that_a_crash_has_torn_is_cut_off(tmp_path: Path, lost: int) -> None:
    path = tmp_path / "trace.jsonl"
    with recording(path) as record:
        record.write(1.0, "a", KEYS[:2], (64, 1))
        record.write(2.0, "a", KEYS[:2], (65, 1))
    os.truncate(path, path.stat().st_size - lost)
    with recording(path) as record:
        record.write(3.0, "a", KEYS[:2], (66, 1))
    assert inputs(path) == [64, 66]


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"my thesis\n", "trace.jsonl", "no trace"),
        (
            b'{"at": 1, "scope": "", "block": 16, "input": 1, "output": 1, "keys": []}\n',
            "trace.jsonl",
            "16 tokens",
        ),
        (b"", "trace.jsonl.gz", "plain text"),
    ],
)
def test_what_is_no_trace_of_this_server_is_left_alone(
    tmp_path: Path, content: bytes, name: str, said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BrokenTrace, match=said):
        TraceRecording(path, 32, print)
    assert path.read_bytes() == content


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(BrokenTrace, match="can't be written"):
        TraceRecording(tmp_path, 32, print)


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from hotprefix.traces.recording import TraceRecording
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (250, 250))
record = TraceRecording(Path(sys.argv[1]), 32, print)
for count in range(6):
    record.write(1.0, "a", [b"k" * 32] * 2, (64 + count, 1))
record.close()
"""


def test_what_the_disk_has_no_room_for_costs_whole_lines_and_is_told_once(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    command = [sys.executable, "-c", FULL_DISK, str(path)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert told.count("requests are missing") == 1
    assert inputs(path) == [64, 65]
