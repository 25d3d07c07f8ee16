"""A real `hotprefix serve` process, asked over HTTP, and what its metrics say."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from hotprefix.models.catalogue import DEFAULT_MODEL

CHAT = "/v1/chat/completions"
PATIENCE = 120.0
SOFT_FILES = 1024
"""What most systems let a process open at first."""

Sample = tuple[str, frozenset[tuple[str, str]]]


@dataclass
class Server:
    """A running server; `log` is its stderr."""

    process: subprocess.Popen[str]
    url: str
    log: Path
    client: httpx.Client = field(init=False)

    def __post_init__(self) -> None:
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE, trust_env=False)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    def post(self, path: str = CHAT, *, key: str | None = None, **fields: Any) -> httpx.Response:
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        return self.client.post(path, json={"model": DEFAULT_MODEL} | fields, headers=headers)

    def ask(self, path: str = CHAT, *, key: str | None = None, **fields: Any) -> dict[str, Any]:
        """The whole answer to a request that has to work; greedy unless told otherwise."""
        response = self.post(path, key=key, **{"temperature": 0} | fields)
        assert response.status_code == 200, response.text
        answer: dict[str, Any] = response.json()
        return answer

    def chunks(self, path: str = CHAT, **fields: Any) -> list[dict[str, Any]]:
        """All chunks of a stream, the last one with the usage."""
        options = {"stream": True, "stream_options": {"include_usage": True}}
        response = self.post(path, **{"temperature": 0} | options | fields)
        assert response.headers["content-type"].startswith("text/event-stream"), response.text
        return read_events(response.text)

    def tokens(self, **fields: Any) -> list[int]:
        """What a prompt becomes."""
        response = self.post("/tokenize", **fields)
        assert response.status_code == 200, response.text
        ids: list[int] = response.json()["tokens"]
        return ids

    def metrics(self) -> dict[Sample, float]:
        """Every sample by name and labels."""
        text = self.client.get("/metrics").text
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }

    def metric(self, name: str, **labels: str) -> float:
        return self.metrics()[f"hotprefix_{name}", frozenset(labels.items())]

    def busy(self) -> dict[str, float]:
        """Requests in the engine and KV blocks that they hold."""
        found = self.metrics()
        in_use = frozenset({("state", "in_use")})
        return {
            "running": found["hotprefix_num_requests_running", frozenset()],
            "waiting": found["hotprefix_num_requests_waiting", frozenset()],
            "in_use": found["hotprefix_kv_blocks", in_use],
        }

    def require_nothing_left(self) -> None:
        """Wait until nobody is served, and see that no block is held."""
        until(lambda: not any(self.busy().values()), lambda: f"still busy: {self.busy()}")

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def wait(self, seconds: float = PATIENCE) -> int:
        """The exit code."""
        return self.process.wait(seconds)

    def log_lines(self, event: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]
        return [line for line in lines if line["event"] == event]


def until(condition: Callable[[], bool], complaint: Callable[[], str], seconds: float = PATIENCE) -> None:
    """Ask again and again until `condition` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, complaint()
        time.sleep(0.02)


def read_events(text: str) -> list[dict[str, Any]]:
    """The chunks of a complete stream."""
    events = text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


def text_of(answer: dict[str, Any]) -> str:
    """The first choice's text."""
    content: str = answer["choices"][0]["message"]["content"]
    return content


def cached(answer: dict[str, Any]) -> int:
    """Tokens of the prompt that came from the cache."""
    tokens: int = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
    return tokens


def command(*options: str) -> list[str]:
    """A process with few open files, as most systems start it, that becomes the server."""
    few = ["sh", "-c", f'ulimit -Sn {SOFT_FILES} && exec "$@"', "sh"]
    return [*few, sys.executable, "-m", "hotprefix", "serve", "--port", "0", *options]


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Server]:
    """A server on a free port, with a state of its own.

    Unless the test ended it, SIGTERM does, and must do it in order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    options = ("--state-dir", str(folder / "state"), *options)
    log = folder / "stderr.log"
    with log.open("w", encoding="utf-8") as stderr:
        process = subprocess.Popen(command(*options), stdout=subprocess.PIPE, stderr=stderr, text=True)
    try:
        assert process.stdout is not None
        announced = process.stdout.readline()
        assert " is ready on http://" in announced, log.read_text(encoding="utf-8")
        server = Server(process, announced.split()[-1], log)
        assert server.client.get("/readyz").json() == {"status": "ready"}
        yield server
        server.client.close()
        if process.poll() is None:
            server.signal(signal.SIGTERM)
            assert server.wait() == 0
        assert "Traceback" not in log.read_text(encoding="utf-8")
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
