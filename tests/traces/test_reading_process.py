"""A trace read in another process is the same trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.made_up import made_up
from hotprefix.traces.reading_process import read_apart
from hotprefix.traces.source import TraceSource


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "trace.jsonl"
    file.write_bytes(b"".join(made_up(3000, seed=1)))
    return file


def test_it_is_the_same_and_tells_how_far_it_is(path: Path) -> None:
    source, counts = TraceSource([path]), list[int]()
    requests = [request for batch in read_apart(source, counts.append) for request in batch.requests()]
    assert requests == list(source.requests())
    assert sum(counts) == source.bytes


def test_an_error_comes_over(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(BrokenTrace, match=r"trace\.jsonl:3001 has no"):
        list(read_apart(TraceSource([path])))


def test_nobody_has_to_read_to_the_end(path: Path) -> None:
    batches = read_apart(TraceSource([path]))
    first = next(next(batches).requests())
    batches.close()  # type: ignore[attr-defined]
    assert first == next(TraceSource([path]).requests())


def test_made_up_traffic_is_the_same_every_time_and_shares_prefixes(path: Path) -> None:
    assert b"".join(made_up(50, seed=3)) == b"".join(made_up(50, seed=3)) != b"".join(made_up(50, seed=4))
    source = TraceSource([path])
    requests = list(source.requests())
    assert source.block_size == 512
    assert [request.at for request in requests] == sorted(request.at for request in requests)
    known = sum(request.known for request in requests) / sum(len(request.keys) for request in requests)
    assert 0.5 < known < 0.9
