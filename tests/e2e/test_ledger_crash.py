"""The ledger's totals are the responses' sum, through cancelled requests and a kill -9 in the middle."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from tests.e2e.server import CHAT, Server, serving, until

REQUESTS = int(os.environ.get("HOTPREFIX_LEDGER_REQUESTS", "2000"))
AT_ONCE = 16
CANCELLED = 0.05
RULES = " ".join(f"Rule {number}: shelf {number * 7} holds {number * 3} boxes." for number in range(110))

pytestmark = pytest.mark.model

Counts = tuple[int, int, int, int]
"""Prompt, read, written and drawn tokens."""


@dataclass
class Load:
    """Mixed requests with ids of their own; what was answered, by id."""

    random: random.Random
    answered: dict[str, Counts] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=set)

    async def run(self, url: str, ids: list[str], kill_after: int, server: Server) -> None:
        """Send the requests, at most `AT_ONCE` together; kill the server after so many answers."""
        line = iter(ids)
        async with httpx.AsyncClient(base_url=url, timeout=120, trust_env=False) as client:

            async def worker() -> None:
                for name in line:
                    try:
                        await self._one(client, name)
                    except httpx.HTTPError:
                        self.broken.add(name)
                        return
                    if kill_after and len(self.answered) >= kill_after:
                        server.signal(signal.SIGKILL)

            await asyncio.gather(*(worker() for _ in range(AT_ONCE)))

    async def _one(self, client: httpx.AsyncClient, name: str) -> None:
        body = self._body()
        headers = {"x-request-id": name, "authorization": f"Bearer key-{self.random.randrange(3)}"}
        if self.random.random() < CANCELLED:
            body |= {"stream": True, "max_tokens": 64, "ignore_eos": True}
            async with client.stream("POST", CHAT, json=body, headers=headers) as response:
                async for _ in response.aiter_bytes():
                    break
            self.cancelled.add(name)
            return
        response = await client.post(CHAT, json=body, headers=headers)
        assert response.status_code == 200, response.text
        self.answered[name] = _counts(_usage(response))

    def _body(self) -> dict[str, Any]:
        text = {"type": "text", "text": RULES + str(self.random.randrange(4))}
        if self.random.random() < 0.3:
            text["cache_control"] = {"type": "ephemeral"}
        question = {"role": "user", "content": f"Where is box {self.random.randrange(30)}?"}
        body: dict[str, Any] = {
            "model": DEFAULT_MODEL,
            "messages": [{"role": "system", "content": [text]}, question],
            "max_tokens": self.random.randint(1, 3),
            "temperature": 0,
        }
        if self.random.random() < 0.5:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return body


def _usage(response: httpx.Response) -> dict[str, Any]:
    if response.headers["content-type"].startswith("application/json"):
        usage: dict[str, Any] = response.json()["usage"]
        return usage
    last = response.text.split("\n\n")[-3]
    streamed: dict[str, Any] = orjson.loads(last.removeprefix("data: "))
    return dict(streamed["usage"])


def _counts(usage: dict[str, Any]) -> Counts:
    details = usage["prompt_tokens_details"]
    written = details.get("cache_creation_input_tokens", 0)
    return usage["prompt_tokens"], details["cached_tokens"], written, usage["completion_tokens"]


def read_ledger(file: Path) -> dict[str, list[tuple[Counts, str]]]:
    """Rows by the client's request id, with their finish reasons."""
    rows: dict[str, list[tuple[Counts, str]]] = defaultdict(list)
    with sqlite3.connect(file) as database:
        for name, computed, read, written, free, output, finish in database.execute(
            "SELECT request_id, computed, read, written, free, output, finish FROM ledger_request"
        ):
            counts = computed + read + written + free, read, written, output
            rows[name.rpartition("-")[0]].append((counts, finish))
    return rows


def test_totals_survive_cancelling_and_kill(tmp_path: Path) -> None:
    load = Load(random.Random(5))
    ids = [f"request-{number}" for number in range(REQUESTS)]
    with serving(tmp_path) as server:
        asyncio.run(load.run(server.url, ids, REQUESTS // 2, server))
        server.process.wait(60)
    rest = [name for name in ids if name not in load.answered.keys() | load.cancelled | load.broken]
    with serving(tmp_path) as server:
        asyncio.run(load.run(server.url, rest, 0, server))
        until(lambda: not server.busy()["running"], lambda: "still busy")
    rows = read_ledger(tmp_path / "state" / "ledger.sqlite3")
    assert len(load.broken) <= AT_ONCE
    assert len(load.answered) + len(load.cancelled) + len(load.broken) == REQUESTS
    for name, counts in load.answered.items():
        assert [found for found, _ in rows.pop(name)] == [counts], name
    for name, found in rows.items():
        assert name in load.cancelled | load.broken
        assert len(found) == 1
    booked = [finish for name, found in rows.items() if name in load.cancelled for _, finish in found]
    assert booked.count("aborted") >= 0.5 * len(booked) > 0
