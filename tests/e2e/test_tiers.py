"""The tiers behind a real server: restarts by force and in order, and every tier failing under load."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.server import Server, cached, serving, text_of, until
from tests.tiers.conftest import RedisServer, own_redis

__all__ = ["own_redis"]

pytestmark = pytest.mark.model

RESPONSES = "/v1/responses"
SESSION = {"x-dashscope-session-cache": "enable"}


def rules(name: str, count: int = 60) -> str:
    return " ".join(f"Rule {number} of {name}: shelf {number * 7} is {name}." for number in range(count))


def chat(prefix: str, question: str, *, marked: bool = False) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "text", "text": prefix}
    if marked:
        text["cache_control"] = {"type": "ephemeral"}
    messages = [{"role": "system", "content": [text]}, {"role": "user", "content": question}]
    return {"messages": messages, "max_tokens": 3}


def saved(server: Server, tier: str = "disk") -> float:
    return server.metric("tier_blocks", tier=tier)


def respond(server: Server, **fields: Any) -> dict[str, Any]:
    body = {"model": "smollm2-135m-instruct", "max_output_tokens": 4, "temperature": 0} | fields
    response = server.client.post(RESPONSES, json=body, headers=SESSION)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_prefixes_entries_and_sessions_survive_a_restart(tmp_path: Path, end: signal.Signals) -> None:
    options = ("--kv-disk", "1G")
    with serving(tmp_path, *options) as server:
        plain = server.ask(**chat(rules("lamps"), "Which?"))
        assert cached(plain) == 0
        marked = server.ask(**chat(rules("doors", 100), "Which?", marked=True))
        written = marked["usage"]["prompt_tokens_details"]["cache_creation_input_tokens"]
        assert written > 1024
        turn = respond(server, input=rules("rivers", 100))
        if end is signal.SIGKILL:
            # An idle server saves what it has; then there is nothing that a crash could take.
            total = sum(one["usage"]["prompt_tokens"] for one in (plain, marked))
            total += turn["usage"]["input_tokens"]
            until(lambda: saved(server) >= total // 32, lambda: f"{saved(server)} of {total // 32} saved")
        server.signal(end)
        server.wait()
    with serving(tmp_path, *options) as server:
        again = server.ask(**chat(rules("lamps"), "What?"))
        assert cached(again) >= 256
        hit = server.ask(**chat(rules("doors", 100), "What?", marked=True))
        assert cached(hit) == written
        assert hit["usage"]["prompt_tokens_details"]["cache_creation_input_tokens"] == 0
        following = respond(server, input="And now?", previous_response_id=turn["id"])
        assert following["usage"]["input_tokens_details"]["cached_tokens"] > 1024
        assert server.metric("restored_tokens_total") > written


def test_without_a_lasting_tier_a_restart_is_named_as_the_reason(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        server.ask(**chat(rules("doors", 100), "Which?", marked=True))
    with serving(tmp_path) as server:
        response = server.post(**chat(rules("doors", 100), "What?", marked=True))
        assert response.json()["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
        assert response.headers["x-hotprefix-miss-reason"] == "RESTART_LOST"


def test_another_model_format_finds_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, "--kv-disk", "1G") as server:
        server.ask(**chat(rules("lamps"), "Which?"))
    with serving(tmp_path, "--kv-disk", "1G", "--kv-precision", "u8") as server:
        assert cached(server.ask(**chat(rules("lamps"), "What?"))) == 0


class Disasters:
    """What befalls the tiers while requests run."""

    def __init__(self, redis: RedisServer, folder: Path, seed: int) -> None:
        self._redis = redis
        self._folder = folder
        self._random = random.Random(seed)
        self._are_slow = False

    def strike(self, number: int) -> None:
        [self._slow, self._kill, self._corrupt, self._cut, self._heal][number % 5]()

    def end(self) -> None:
        if self._are_slow:
            self._redis.process.send_signal(signal.SIGCONT)

    def _slow(self) -> None:
        self._redis.process.send_signal(signal.SIGSTOP)
        self._are_slow = True

    def _kill(self) -> None:
        self._redis.stop()
        self._are_slow = False

    def _corrupt(self) -> None:
        for file, size in self._segments():
            with suppress(FileNotFoundError), file.open("r+b") as stream:
                for _ in range(200):
                    stream.seek(self._random.randrange(size))
                    stream.write(b"\xff")

    def _cut(self) -> None:
        for file, size in self._segments():
            with suppress(FileNotFoundError):
                os.truncate(file, size // 2)

    def _heal(self) -> None:
        self._redis.start()

    def _segments(self) -> Iterator[tuple[Path, int]]:
        """Files with records, and their bytes. The server may delete them meanwhile."""
        for file in list(self._folder.rglob("*.kv")):
            with suppress(FileNotFoundError):
                size = file.stat().st_size
                if size > 1 << 16:
                    yield file, size


def test_no_failing_tier_is_ever_seen_in_an_answer(
    tmp_path: Path, own_redis: RedisServer, plain: Server
) -> None:
    """Redis hangs and dies, the disk's files are scribbled over and cut, and all of them are too small."""
    asked = [chat(rules(name, 30), question) for name in "abcdefgh" for question in ("Why?", "Who?")]
    expected = [text_of(plain.ask(**body)) for body in asked]
    options = ("--kv-arena", "64M", "--kv-ram", "30M", "--kv-disk", "100M", "--kv-redis", "100M")
    options = (*options, "--redis-url", own_redis.url, "--decode", "exact", "--profile", "hotprefix")
    with serving(tmp_path, *options) as server, ThreadPoolExecutor(4) as pool:
        disasters = Disasters(own_redis, tmp_path / "state" / "kv", 7)
        numbers = random.Random(3).choices(range(len(asked)), k=120)
        try:
            for start in range(0, len(numbers), 12):
                some = numbers[start : start + 12]
                answers = pool.map(lambda number: server.ask(**asked[number]), some)
                if start:
                    disasters.strike(start // 12 - 1)
                for number, answer in zip(some, answers, strict=True):
                    assert text_of(answer) == expected[number]
        finally:
            disasters.end()
        server.require_nothing_left()
        assert server.metric("restored_tokens_total") > 1000
        errors = sum(server.metric("tier_errors_total", tier=tier) for tier in ("disk", "redis"))
        damaged = server.metric("tier_damaged_total", tier="disk")
        assert errors + damaged > 0, "nothing has failed: the test shows nothing"
