"""`hotprefix warm` against a real server, and servers that warm before they are ready."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

RULES = [{"role": "system", "content": "Answer in one sentence."}]
PATIENCE = 60.0


@contextmanager
def server(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A scripted engine behind the real application; the address is known before it is ready."""
    command = [sys.executable, "-m", "tests.app.warming_server", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE)


def warm(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hotprefix", "warm", "--url", url, *arguments]
    environment = os.environ | {"NO_PROXY": "*", "no_proxy": "*", "COLUMNS": "160"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment
    )


def until_ready(url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        # The address is known before anybody listens there.
        with contextlib.suppress(httpx.ConnectError):
            if httpx.get(f"{url}/readyz", trust_env=False).status_code == 200:
                return
        time.sleep(0.02)
    raise AssertionError(f"{url} was never ready")


@pytest.fixture
def prefixes(tmp_path: Path) -> Path:
    path = tmp_path / "prefixes.jsonl"
    entries = [{"messages": RULES}, {"name": "shop", "messages": RULES, "pin": True}]
    path.write_text("\n".join(map(json.dumps, entries)), encoding="utf-8")
    return path


def test_prefixes_are_sent_and_told(prefixes: Path) -> None:
    with server() as (_, url):
        until_ready(url)
        done = warm(url, str(prefixes), "--api-key", "mine", "--json")
        assert (done.returncode, done.stderr) == (0, "")
        facts = json.loads(done.stdout)
        assert [one["prefix"] for one in facts["prefixes"]] == ["prefixes.jsonl:1", "prefixes.jsonl:2 (shop)"]
        assert all(one["computed_tokens"] > 0 and one["problem"] is None for one in facts["prefixes"])
        shown = warm(url, str(prefixes), "--api-key", "mine")
        assert "2 of 2 prefixes are warm:" in shown.stdout
        # They belong to the key.
        listed = httpx.get(f"{url}/v1/caches", headers={"authorization": "Bearer mine"}, trust_env=False)
        assert [cache["name"] for cache in listed.json()["data"]] == ["shop"]
        assert httpx.get(f"{url}/v1/caches", trust_env=False).json()["data"] == []


def test_what_the_server_refuses_is_told_and_the_rest_is_warmed(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps([{"messages": [{"role": "wizard"}]}, {"messages": RULES}]), encoding="utf-8")
    with server() as (_, url):
        until_ready(url)
        done = warm(url, str(path))
    assert done.returncode == 1
    assert "1 of 2 prefixes are warm" in done.stdout
    assert done.stderr.startswith("Error: 1 of 2 prefixes were refused: Invalid value for 'messages[0].role'")
    assert len(done.stderr.splitlines()) == 1


def test_no_server_and_no_file_are_one_line(prefixes: Path) -> None:
    done = warm("http://127.0.0.1:9", str(prefixes))
    assert done.returncode == 1
    assert "can't be reached" in done.stderr
    done = warm("127.0.0.1:9", str(prefixes))
    assert "'http://' or 'https://' protocol. Is the server running?" in done.stderr
    missing = warm("http://127.0.0.1:9", "nothing.json")
    assert (missing.returncode, missing.stderr) == (
        1,
        "Error: nothing.json can't be read: No such file or directory.\n",
    )


def test_ctrl_c_says_what_is_warm_and_leaves_no_traceback(prefixes: Path) -> None:
    """The server holds the second prefix for ever."""
    with server("--hold-after", "1") as (process, url):
        until_ready(url)
        command = [sys.executable, "-m", "hotprefix", "warm", "--url", url, str(prefixes)]
        environment = os.environ | {"NO_PROXY": "*", "no_proxy": "*", "COLUMNS": "160"}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        ) as warming:
            assert process.stderr is not None
            assert "holding" in process.stderr.readline()
            warming.send_signal(signal.SIGINT)
            out, err = warming.communicate(timeout=PATIENCE)
        assert warming.returncode == 130
        assert "1 of 2 prefixes are warm" in out
        assert err == ""


def test_a_server_is_ready_once_its_files_are_warm(prefixes: Path) -> None:
    with server("--warm", str(prefixes), "--hold-after", "1") as (process, url):
        assert process.stderr is not None
        assert "holding" in process.stderr.readline()
        answer = httpx.get(f"{url}/readyz", trust_env=False)
        assert (answer.status_code, answer.json()) == (503, {"status": "warming"})
        assert httpx.get(f"{url}/healthz", trust_env=False).status_code == 200
        process.send_signal(signal.SIGUSR1)  # lets the prefix through
        until_ready(url)
        (cache,) = httpx.get(f"{url}/v1/caches", trust_env=False).json()["data"]
        assert (cache["name"], cache["state"]) == ("shop", "warm")
        assert process.stdout is not None
        assert f"is ready on {url}" in process.stdout.readline()


def test_named_caches_of_an_earlier_run_are_warm_again(tmp_path: Path, prefixes: Path) -> None:
    state = ("--state", str(tmp_path / "state"))
    with server(*state) as (_, url):
        until_ready(url)
        assert warm(url, str(prefixes)).returncode == 0
    with server(*state) as (_, url):
        until_ready(url)
        (cache,) = httpx.get(f"{url}/v1/caches", trust_env=False).json()["data"]
        assert (cache["name"], cache["state"], cache["note"]) == ("shop", "warm", None)
    with server(*state, "--model", "another") as (_, url):
        until_ready(url)
        (cache,) = httpx.get(f"{url}/v1/caches", trust_env=False).json()["data"]
        assert cache["state"] == "warm"
        assert "have changed" in cache["note"]


def test_a_signal_while_warming_ends_the_server(prefixes: Path) -> None:
    with server("--warm", str(prefixes), "--hold-after", "0") as (process, url):
        assert process.stderr is not None
        assert "holding" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
        assert "Traceback" not in err
        assert "is ready" not in out
        assert url.startswith("http://")
