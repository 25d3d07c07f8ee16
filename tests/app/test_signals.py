"""A real process and real signals."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

BODY = {"model": "scripted", "messages": [{"role": "user", "content": "x"}], "stream": True}


@contextmanager
def scripted_server(drain_seconds: float) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "tests.app.scripted_server", str(drain_seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            found = re.search(r"http://\S+", first)
            assert found, first
            yield process, found[0]
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> list[dict[str, object]]:
    """Waits for the end; the log lines."""
    _, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "Traceback" not in err
    return [json.loads(line) for line in err.splitlines()]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_leaves_at_once(number: signal.Signals) -> None:
    with scripted_server(1000) as (process, url):
        assert httpx.get(f"{url}/readyz").status_code == 200
        process.send_signal(number)
        ended(process)


@pytest.mark.parametrize(("drain_seconds", "again"), [(0.1, False), (1000, True)])
def test_a_running_stream_gets_its_last_event(drain_seconds: float, again: bool) -> None:
    with scripted_server(drain_seconds) as (process, url), httpx.Client(base_url=url, timeout=20) as client:
        with client.stream("POST", "/v1/chat/completions", json=BODY) as response:
            lines = response.iter_lines()
            assert "assistant" in next(lines)
            process.send_signal(signal.SIGTERM)
            if again:
                while httpx.get(f"{url}/readyz").status_code == 200:
                    pass
                process.send_signal(signal.SIGINT)
            events = [line for line in lines if line]
        assert json.loads(events[-2].removeprefix("data: "))["error"]["code"] == "shutting_down"
        assert events[-1] == "data: [DONE]"
        requests = [line for line in ended(process) if line["event"] == "request"]
        assert requests[-1 if not again else 0]["error"] == "shutting_down"


def test_a_curl_line_to_try_is_printed() -> None:
    with scripted_server(1) as (process, url):
        assert process.stdout is not None
        text = "".join(process.stdout.readline() for _ in range(4))
        assert "scripted" in text
        assert "up to 2 GiB" in text
        found = re.search(r"curl (\S+) .* -d '(.*)'", text)
        assert found
        assert found[1] == f"{url}/v1/chat/completions"
        assert json.loads(found[2])["model"] == "scripted"
