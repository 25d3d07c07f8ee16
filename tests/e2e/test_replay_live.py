"""A replay finds what a real server finds: the same trace through both, with an arena that has to evict."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import orjson
import pytest

from hotprefix.models.manifest import ModelManifest
from hotprefix.traces.settings import ReplaySettings
from hotprefix.traces.simulator import replay
from hotprefix.traces.source import TraceSource
from tests.e2e.server import Server, cached, serving

pytestmark = pytest.mark.model

BLOCK = 32
POLICIES = ("lru", "adaptive")
TRACE = "recorded.jsonl"
REQUESTS = 60
WORDS = range(1_000, 20_000)
"""Ids of ordinary tokens."""


@pytest.fixture(scope="module", params=POLICIES)
def small(
    request: pytest.FixtureRequest, default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Server]]:
    """An arena of some hundred blocks; requests are recorded."""
    folder = tmp_path_factory.mktemp(f"small-{request.param}")
    options = ("--kv-arena", "48M", "--policy", request.param, "--profile", "hotprefix")
    with serving(folder, *options, "--trace", str(folder / TRACE)) as server:
        yield request.param, server


def traffic() -> list[tuple[list[int], list[int]]]:
    """Prompts as block numbers and as tokens: system prompts of four blocks, talks behind some of them, and a
    question of 20 tokens that nobody asks twice."""
    random = Random(5)
    texts: dict[int, list[int]] = {}
    talks = [[1_000 * (n % 12) + place for place in range(4)] for n in range(24)]
    found = []
    for number in range(REQUESTS):
        talk = talks[min(random.randrange(24), random.randrange(24))]
        blocks = [*talk, 100_000 + number]
        for block in blocks:
            texts.setdefault(block, random.choices(WORDS, k=BLOCK))
        question = texts[blocks[-1]][:20]
        tokens = [token for block in talk for token in texts[block]] + question
        found.append((blocks, tokens))
        if random.random() < 0.4 and len(talk) < 7:
            talk.append(200_000 + number)
    return found


def test_hit_tokens_are_those_of_the_server(
    small: tuple[str, Server], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    policy, server = small
    room = sum(server.metric("kv_blocks", state=state) for state in ("free", "cached", "in_use"))
    live, lines = [], []
    for number, (blocks, tokens) in enumerate(traffic()):
        answer = server.ask("/v1/completions", prompt=tokens, max_tokens=1)
        live.append(cached(answer))
        document = {
            "timestamp": 1_000 * number,
            "input_length": len(tokens),
            "output_length": 1,
            "hash_ids": blocks,
        }
        lines.append(orjson.dumps(document))
    file = tmp_path / "trace.jsonl"
    file.write_bytes(b"\n".join(lines))
    source = TraceSource([file])
    assert source.block_size == BLOCK
    outcome = replay(source.requests(), BLOCK, [ReplaySettings(int(room), policy)])[0]
    assert server.metric("kv_evictions_total") > 20
    assert outcome.evicted > 20
    assert outcome.tokens == sum(len(tokens) for _, tokens in traffic())
    assert 0.2 < outcome.token_rate < 0.9 * outcome.ideal_rate
    assert outcome.hit_tokens == pytest.approx(sum(live), rel=0.01)
    recorded = TraceSource([recording(tmp_path_factory, policy)])
    again = replay(recorded.requests(), recorded.block_size, [ReplaySettings(int(room), policy)])[0]
    assert (again.requests, again.tokens) == (outcome.requests, outcome.tokens)
    assert again.hit_tokens == pytest.approx(sum(live), rel=0.01)


def recording(factory: pytest.TempPathFactory, policy: str) -> Path:
    """What the server of the fixture has recorded."""
    return next(factory.getbasetemp().glob(f"small-{policy}*/{TRACE}"))
