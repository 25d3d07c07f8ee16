"""Traces of every form, and what is said of broken ones."""

from __future__ import annotations

import gzip
import json
import lzma
import os
from collections.abc import Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from hotprefix.base.ids import BlockKey
from hotprefix.ledger.export import export
from hotprefix.ledger.store import open_store
from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.formats.own import trace_line
from hotprefix.traces.lines import nothing
from hotprefix.traces.request import TraceRequest
from hotprefix.traces.source import TraceOptions, TraceSource
from tests.ledger.rows import ROW, row

LINE = {"timestamp": 1000, "input_length": 1000, "output_length": 7, "hash_ids": [1, 2]}


def write(path: Path, lines: Iterable[Any]) -> Path:
    path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))
    return path


def read(*paths: Path, **options: Any) -> list[TraceRequest]:
    return list(TraceSource(list(paths), TraceOptions(**options)).requests())


def session(path: Path, name: str, starts: Iterable[float], ids: list[int]) -> Path:
    requests = [{"t": start, "in": 130, "out": 5, "hash_ids": ids} for start in starts]
    content = {"id": name, "block_size": 64, "hash_id_scope": "local", "requests": requests}
    path.write_text(json.dumps(content))
    return path


class TestMooncake:
    def test_a_line_is_a_request(self, tmp_path: Path) -> None:
        path = write(tmp_path / "t.jsonl", [LINE, "", LINE | {"timestamp": 2500, "hash_ids": [1, 3]}])
        first, second = read(path)
        assert (first.at, first.input, first.output, first.scope) == (1.0, 1000, 7, "")
        assert second.at == 2.5
        assert first.keys[0] == second.keys[0]
        assert first.keys[1] != second.keys[1]
        assert (first.known, second.known) == (0, 1)

    @pytest.mark.parametrize(
        ("lengths", "block"),
        [
            ([(6758, 14), (7322, 15), (2290, 5)], 512),
            ([(15291, 238), (17401, 271), (130, 2)], 64),
            ([(17, 2), (33, 3), (15, 1)], 16),
            ([(300, 3), (250, 3), (101, 2)], 100),
        ],
    )
    def test_the_block_size_follows_from_the_lengths(
        self, tmp_path: Path, lengths: list[tuple[int, int]], block: int
    ) -> None:
        lines = [LINE | {"input_length": n, "hash_ids": list(range(count))} for n, count in lengths]
        assert TraceSource([write(tmp_path / "t.jsonl", lines)]).block_size == block

    def test_a_size_that_fits_nothing_has_to_be_told(self, tmp_path: Path) -> None:
        lines = [
            LINE | {"input_length": 100, "hash_ids": [1]},
            LINE | {"input_length": 100, "hash_ids": [1] * 90},
        ]
        path = write(tmp_path / "t.jsonl", lines)
        with pytest.raises(BrokenTrace, match="--trace-block"):
            TraceSource([path], TraceOptions())
        lines[1]["hash_ids"] = [1, 2]
        assert TraceSource([write(path, lines)], TraceOptions(block=512)).block_size == 512

    def test_text_and_huge_numbers_are_nanoseconds(self, tmp_path: Path) -> None:
        lines = [LINE | {"timestamp": "1753780607550317897"}, LINE | {"timestamp": 1753780608550317897}]
        first, second = read(write(tmp_path / "t.jsonl", lines))
        assert second.at - first.at == pytest.approx(1, abs=1e-5)

    def test_equal_ids_behind_other_ids_are_other_blocks(self, tmp_path: Path) -> None:
        lines = [LINE | {"hash_ids": [1, 2]}, LINE | {"hash_ids": [5, 2]}, LINE | {"hash_ids": [2, 1]}]
        requests = read(write(tmp_path / "t.jsonl", lines))
        assert len({key for request in requests for key in request.keys}) == 6
        assert [request.known for request in requests] == [0, 0, 0]

    def test_negative_and_very_large_ids_are_ids(self, tmp_path: Path) -> None:
        lines = [LINE | {"hash_ids": [-1, 2**64 - 2]}] * 2
        assert read(write(tmp_path / "t.jsonl", lines))[1].known == 2

    @pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
    def test_packed_files_are_read_as_they_are(self, tmp_path: Path, pack: Any) -> None:
        plain = write(tmp_path / "t.jsonl", [LINE] * 3)
        packed = tmp_path / ("t.jsonl.gz" if pack is gzip.compress else "t.jsonl.xz")
        packed.write_bytes(pack(plain.read_bytes()))
        assert read(packed) == read(plain)
        packed.write_bytes(packed.read_bytes()[:-9])
        with pytest.raises(BrokenTrace, match=r"t\.jsonl\..z can't be unpacked"):
            read(packed)

    @pytest.mark.parametrize(
        ("bad", "said"),
        [
            ("{nonsense", "t.jsonl:2 is no JSON"),
            ("[1]", "t.jsonl:2 is no JSON object"),
            ({"timestamp": 1, "output_length": 1, "hash_ids": []}, "t.jsonl:2 has no 'input_length'"),
            (LINE | {"input_length": -1}, "t.jsonl:2: 'input_length' is -1"),
            (LINE | {"input_length": True}, "t.jsonl:2: 'input_length' is True"),
            (LINE | {"hash_ids": ["x"]}, "t.jsonl:2: 'hash_ids' has to be a list of whole numbers"),
            (LINE | {"timestamp": None}, "t.jsonl:2: 'timestamp' is None"),
        ],
    )
    def test_an_error_names_file_and_line(self, tmp_path: Path, bad: Any, said: str) -> None:
        path = write(tmp_path / "t.jsonl", [LINE, bad])
        with pytest.raises(BrokenTrace) as caught:
            read(path, block=512)
            TraceSource([path])
        assert said in str(caught.value)


class TestOrder:
    def test_a_little_disorder_is_put_right(self, tmp_path: Path) -> None:
        lines = [LINE | {"timestamp": at} for at in (3000, 1000, 2000)]
        assert [request.at for request in read(write(tmp_path / "t.jsonl", lines))] == [1, 2, 3]

    def test_a_lot_is_refused(self, tmp_path: Path) -> None:
        lines = [LINE | {"timestamp": at} for at in [*range(10_000, 13_000), 5]]
        with pytest.raises(BrokenTrace, match=r"request 3001 is .* too late"):
            read(write(tmp_path / "t.jsonl", lines))

    def test_files_are_merged_by_time(self, tmp_path: Path) -> None:
        one = session(tmp_path / "1.json", "one", [0, 10], [1, 2])
        two = session(tmp_path / "2.json", "two", [0, 4], [1, 2])
        requests = read(one, two)
        assert [(request.at, request.scope) for request in requests] == [
            (0, "one"), (0, "two"), (4, "two"), (10, "one"),
        ]  # fmt: skip
        assert [request.known for request in requests] == [0, 0, 2, 2]
        assert not set(requests[0].keys) & set(requests[1].keys)

    def test_a_gap_between_their_starts(self, tmp_path: Path) -> None:
        session(tmp_path / "1.json", "one", [0, 10], [1, 2])
        session(tmp_path / "2.json", "two", [0, 4], [1, 2])
        times = [(request.at, request.scope) for request in read(tmp_path, session_gap=7)]
        assert times == [(0, "one"), (7, "two"), (10, "one"), (11, "two")]

    def test_at_most_so_many(self, tmp_path: Path) -> None:
        assert len(read(write(tmp_path / "t.jsonl", [LINE] * 2000), most=700)) == 700


class TestAgentSessions:
    def test_a_global_scope_is_shared(self, tmp_path: Path) -> None:
        for name in ("1", "2"):
            path = session(tmp_path / f"{name}.json", name, [0], [1, 2])
            path.write_text(path.read_text().replace('"local"', '"global"'))
        assert [request.known for request in read(tmp_path)] == [0, 2]

    @pytest.mark.parametrize(
        ("old", "new", "said"),
        [
            ('"block_size": 64', '"block_size": 0', "'block_size' is 0"),
            ('"t": 0', '"t": "x"', "request 1: 't' is 'x'"),
            ('"requests": [', '"requests": [5, ', "request 1 is no JSON object"),
            ("]}", "", "is no JSON"),
        ],
    )
    def test_an_error_names_file_and_request(self, tmp_path: Path, old: str, new: str, said: str) -> None:
        path = session(tmp_path / "s.json", "s", [0], [1, 2])
        path.write_text(path.read_text().replace(old, new))
        with pytest.raises(BrokenTrace) as caught:
            read(path)
        assert said in str(caught.value)
        assert "s.json" in str(caught.value)


class TestLengths:
    def test_azure(self, tmp_path: Path) -> None:
        lines = [
            "TIMESTAMP,ContextTokens,GeneratedTokens",
            "2023-11-16 18:17:03.9799600,4808,10",
            "2023-11-16 18:17:05.9799600,64,2",
        ]
        first, second = read(write(tmp_path / "a.csv", lines), shared_tokens=64, block=32)
        assert second.at - first.at == 2
        assert (first.input, first.output, len(first.keys), second.known) == (4808, 10, 151, 2)
        for bad, said in (
            ("nonsense,1,2", "a.csv:4: 'nonsense' is no date"),
            ("2023-11-16,1", "a.csv:4 has more"),
        ):
            with pytest.raises(BrokenTrace) as caught:
                read(write(tmp_path / "a.csv", [*lines, bad]))
            assert said in str(caught.value)

    @pytest.mark.parametrize("suffix", ["csv", "parquet"])
    def test_exports_of_the_ledger(self, tmp_path: Path, suffix: str) -> None:
        file = tmp_path / f"usage.{suffix}"
        with closing(open_store(tmp_path / "ledger.sqlite3")) as store:
            store.append([row(1), row(2, at=ROW.at + 60, tenant="other")])
            export(store, file)
        first, second = read(file)
        assert first.at == ROW.at == datetime(2026, 3, 24, tzinfo=UTC).timestamp()
        assert (first.input, first.output) == (ROW.classes.prompt, ROW.classes.output)
        assert (second.at, second.scope) == (ROW.at + 60, "other")
        assert not TraceSource([file]).has_identity

    def test_another_parquet_file_is_no_trace(self, tmp_path: Path) -> None:
        import polars as pl

        pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "x.parquet")
        with pytest.raises(BrokenTrace, match="no column at, output, prompt, tenant"):
            read(tmp_path / "x.parquet")


class TestOwn:
    def test_what_is_written_is_read(self, tmp_path: Path) -> None:
        path = tmp_path / "own.jsonl"
        keys = [BlockKey(bytes([number]) * 32) for number in range(3)]
        lines = [
            trace_line(32, 0.5, "acme", keys[:2], (70, 5)),
            trace_line(32, 1.5, "acme", [keys[0], keys[2]], (80, 6)),
            trace_line(32, 2.5, "beta", keys[:2], (70, 5)),
        ]
        path.write_bytes(b"".join(lines))
        source = TraceSource([path])
        requests = list(source.requests())
        assert (source.block_size, source.names) == (32, ["hotprefix"])
        assert [request.known for request in requests] == [0, 1, 0]
        assert [(request.at, request.scope, request.input) for request in requests][1] == (1.5, "acme", 80)

    def test_broken_ones(self, tmp_path: Path) -> None:
        good = {"at": 1.0, "block": 32, "input": 64, "output": 1, "keys": ["ab" * 8]}
        for bad, said in ((good | {"keys": ["xyz"]}, "'xyz'"), (good | {"block": 64}, "another size")):
            with pytest.raises(BrokenTrace, match=said):
                read(write(tmp_path / "own.jsonl", [good, bad]))


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", 10**400])
def test_times_that_are_none(tmp_path: Path, value: object) -> None:
    with pytest.raises(BrokenTrace, match=r"t\.jsonl:1"):
        read(write(tmp_path / "t.jsonl", [LINE | {"timestamp": value}]))


def test_a_byte_order_mark(tmp_path: Path) -> None:
    plain = write(tmp_path / "t.jsonl", [LINE] * 3)
    marked = tmp_path / "marked.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + plain.read_bytes())
    assert read(marked) == read(plain)


def test_a_stream_can_be_read_only_once_and_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BrokenTrace, match="no file but a stream"):
        read(tmp_path / "pipe")


def test_what_is_none_of_them(tmp_path: Path) -> None:
    with pytest.raises(BrokenTrace, match="is empty"):
        read(write(tmp_path / "none.jsonl", []))
    with pytest.raises(BrokenTrace, match="none of the known formats"):
        read(write(tmp_path / "notes.txt", ["hello"]))
    with pytest.raises(BrokenTrace, match="There is no"):
        read(tmp_path / "missing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(BrokenTrace, match="empty folder"):
        read(tmp_path / "empty")


def test_blocks_of_different_sizes_are_not_mixed(tmp_path: Path) -> None:
    session(tmp_path / "1.json", "one", [0], [1, 2])
    write(tmp_path / "t.jsonl", [LINE | {"hash_ids": [1, 2], "input_length": 1000}])
    with pytest.raises(BrokenTrace, match="different sizes"):
        read(tmp_path)


def test_progress_counts_the_bytes_on_disk(tmp_path: Path) -> None:
    write(tmp_path / "1.jsonl", [LINE] * 3000)
    source = TraceSource([tmp_path])
    counts: list[int] = []
    assert len(list(source.requests(counts.append))) == 3000
    assert sum(counts) == source.bytes
    assert len(counts) > 5
    assert list(source.requests(nothing)) == list(source.requests())
