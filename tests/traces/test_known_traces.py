"""Recorded traffic: what a cache without limits finds, what LRU finds, and that `adaptive` finds no less."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from hotprefix.app.replay_sweep import KvShape
from hotprefix.traces.made_up import Traffic, made_up
from hotprefix.traces.outcome import Outcome
from hotprefix.traces.settings import ReplaySettings
from hotprefix.traces.simulator import replay
from hotprefix.traces.source import TraceOptions, TraceSource
from hotprefix.traces.survey import Survey, survey
from tests.traces.places import AZURE, CONVERSATION, SESSIONS, SYNTHETIC

SHARES = (0.01, 0.05, 0.1, 0.2)
_SHORT = 4000
"""Requests of the long trace that the comparison of policies takes."""


@cache
def source(path: Path, most: int | None = None) -> TraceSource:
    return TraceSource([path], TraceOptions(most=most))


@cache
def known(path: Path, most: int | None = None) -> Survey:
    return survey(source(path, most))


@cache
def outcomes(path: Path, policy: str, most: int | None = None) -> list[Outcome]:
    trace, unique = source(path, most), known(path, most).unique
    runs = [ReplaySettings(int(unique * share), policy) for share in SHARES]
    return replay(trace.requests(), trace.block_size, runs)


@pytest.mark.parametrize(
    ("path", "requests", "block", "blocks", "tokens"),
    [
        (CONVERSATION, 12_031, 512, 0.366, 0.374),
        (SYNTHETIC, 3_993, 512, 0.640, 0.651),
        (SESSIONS, 1_665, 64, 0.940, 0.940),
    ],
)
def test_what_a_cache_without_limits_finds(
    path: Path, requests: int, block: int, blocks: float, tokens: float
) -> None:
    found = known(path)
    assert (found.requests, source(path).block_size) == (requests, block)
    assert found.ideal_block_rate == pytest.approx(blocks, abs=0.0006)
    assert found.ideal_token_rate == pytest.approx(tokens, abs=0.0006)


def test_a_replay_without_limits_finds_as_much() -> None:
    trace, ideal = source(SYNTHETIC), known(SYNTHETIC)
    (outcome,) = replay(trace.requests(), trace.block_size, [ReplaySettings(ideal.unique, "lru")])
    assert (outcome.hit_blocks, outcome.evicted) == (ideal.ideal_blocks, 0)
    assert outcome.hit_tokens == ideal.ideal_tokens


@pytest.mark.parametrize(
    ("path", "rates"),
    [(CONVERSATION, (0.053, 0.196, 0.279, 0.345)), (SYNTHETIC, (0.038, 0.157, 0.262, 0.393))],
)
def test_lru_finds_what_others_measured(path: Path, rates: tuple[float, ...]) -> None:
    found = [outcome.block_rate for outcome in outcomes(path, "lru")]
    assert found == pytest.approx(rates, abs=0.0006)


@pytest.mark.parametrize(("path", "most"), [(SYNTHETIC, None), (CONVERSATION, _SHORT)])
def test_the_adaptive_policy_never_finds_less_than_lru(path: Path, most: int | None) -> None:
    pairs = zip(outcomes(path, "adaptive", most), outcomes(path, "lru", most), strict=True)
    assert all(one.hit_blocks >= other.hit_blocks for one, other in pairs)


@pytest.mark.parametrize("gap", [0.0, 300.0])
def test_nor_on_sessions_that_lru_is_made_for(gap: float) -> None:
    trace = TraceSource([SESSIONS], TraceOptions(session_gap=gap, most=100))
    memories = [int(survey(trace).unique * share) for share in (0.05, 0.2)]
    runs = [ReplaySettings(memory, policy) for policy in ("adaptive", "lru") for memory in memories]
    found = [outcome.hit_blocks for outcome in replay(trace.requests(), trace.block_size, runs)]
    assert all(one >= other for one, other in zip(found[:2], found[2:], strict=True))


def test_the_adaptive_policy_finds_more_where_traffic_allows() -> None:
    gains = [
        one.block_rate / other.block_rate
        for one, other in zip(
            outcomes(CONVERSATION, "adaptive", _SHORT), outcomes(CONVERSATION, "lru", _SHORT), strict=True
        )
    ]
    assert min(gains[1:3]) > 1.08
    assert min(gains) > 1.01


def test_it_takes_to_frequency_where_few_prompts_are_hot(tmp_path: Path) -> None:
    """Calls of programs: fixed prompts, few of them hot, with an end that nobody asks again."""
    file = tmp_path / "calls.jsonl"
    file.write_bytes(b"".join(made_up(6000, 1, Traffic(systems=3000, own_blocks=2, talks=0.0))))
    calls = TraceSource([file])
    memory = survey(calls).unique // 50
    runs = [ReplaySettings(memory, policy) for policy in ("lru", "slru", "adaptive")]
    lru, slru, adaptive = (outcome.block_rate for outcome in replay(calls.requests(), calls.block_size, runs))
    assert slru > 1.05 * lru
    assert adaptive > 1.05 * lru


@pytest.mark.parametrize("policy", ["lru", "adaptive"])
def test_smaller_storage_finds_more_in_the_same_memory(policy: str) -> None:
    trace, shape = source(CONVERSATION, _SHORT), KvShape(30, 3, 64)
    memory = known(CONVERSATION, _SHORT).unique // 20
    runs = [ReplaySettings(int(memory / shape.share_of(codec)), policy) for codec in ("raw", "int8", "mixed")]
    raw, int8, mixed = (outcome.token_rate for outcome in replay(trace.requests(), trace.block_size, runs))
    assert int8 > 1.3 * raw
    assert mixed > 1.2 * int8


def test_lengths_alone_hit_nothing_but_what_is_said_to_be_shared() -> None:
    plain = survey(TraceSource([AZURE]))
    shared = survey(TraceSource([AZURE], TraceOptions(shared_tokens=64)))
    assert plain.requests == shared.requests == 2000
    assert plain.ideal_blocks == 0
    assert 0 < shared.ideal_tokens <= 64 * 1999
    assert 500 < plain.tokens / plain.requests < 3000
