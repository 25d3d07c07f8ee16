"""The placement's table, line by line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotprefix.tiers.facts import BlockFacts, Reason
from hotprefix.tiers.placement import Costs, Placement, TierFacts

RAM, DISK, REDIS = TierFacts("ram"), TierFacts("disk"), TierFacts("redis")
ALL = [RAM, DISK, REDIS]
FAST_MODEL = Costs(seconds_per_token=1e-5, seconds_per_token_before=1e-9, block_bytes=10_000_000)
"""Recomputing 32 tokens takes 0.3 ms at the start, reading them from disk 25 ms."""

COLD = BlockFacts()
HIT = BlockFacts(hits=1)
PINNED = BlockFacts(pinned=True)


@pytest.mark.parametrize(
    ("facts", "reason", "expected"),
    [
        (COLD, Reason.EVICTED, ["ram"]),
        (HIT, Reason.EVICTED, ["ram", "redis"]),
        (PINNED, Reason.EVICTED, ["ram", "disk", "redis"]),
        (COLD, Reason.IDLE, []),
        (HIT, Reason.IDLE, ["disk", "redis"]),
        (PINNED, Reason.IDLE, ["disk", "redis"]),
        (COLD, Reason.SHUTDOWN, []),
        (HIT, Reason.SHUTDOWN, ["disk", "redis"]),
        (PINNED, Reason.SHUTDOWN, ["disk", "redis"]),
    ],
)
def test_admission(facts: BlockFacts, reason: Reason, expected: list[str]) -> None:
    assert Placement(FAST_MODEL).admit(replace(facts, reason=reason), ALL) == expected


@pytest.mark.parametrize("reason", [Reason.IDLE, Reason.SHUTDOWN])
def test_a_block_that_is_dear_to_recompute_needs_no_hit(reason: Reason) -> None:
    """135 M parameters on a CPU: 86 ms against 2 ms."""
    assert Placement().admit(replace(COLD, reason=reason), ALL) == ["disk"]
    assert Placement().admit(COLD, [DISK, REDIS]) == ["disk"]
    assert Placement(FAST_MODEL).admit(COLD, [DISK, REDIS]) == []


def test_depth_makes_it_dear() -> None:
    """Attention grows with the position: behind 16 million tokens even the fast model is slow."""
    facts = BlockFacts(reason=Reason.IDLE)
    policy = Placement(FAST_MODEL)
    depth = [
        p for p in (0, 1 << 10, 1 << 20, 1 << 24, 1 << 26) if policy.admit(replace(facts, position=p), [DISK])
    ]
    assert depth == [1 << 24, 1 << 26]


def test_a_slow_disk_is_asked_for_less() -> None:
    facts = BlockFacts(reason=Reason.IDLE)
    assert Placement().admit(facts, [replace(DISK, read_bandwidth=400e6)]) == ["disk"]
    assert Placement().admit(facts, [replace(DISK, read_bandwidth=40e6)]) == []
    assert Placement(margin=2).admit(facts, [replace(DISK, read_bandwidth=40e6)]) == ["disk"]


def test_short_blocks_cost_less() -> None:
    costs = Costs()
    assert costs.recompute(0, 32) == pytest.approx(32 * 2.7e-3 + 32 * 16 * 8.6e-7)
    assert costs.recompute(4096, 32) > costs.recompute(0, 32) > costs.recompute(0, 16)


@pytest.mark.parametrize(
    ("facts", "source", "expected"),
    [
        (COLD, "ram", []),
        (HIT, "ram", ["disk", "redis"]),
        (PINNED, "ram", ["disk", "redis"]),
        (HIT, "disk", ["redis"]),
        (HIT, "redis", []),
    ],
)
def test_demotion(facts: BlockFacts, source: str, expected: list[str]) -> None:
    assert Placement(FAST_MODEL).demote(replace(facts, reason=Reason.OVERFLOW), source, ALL) == expected


def test_overflow_that_is_dear_goes_to_disk() -> None:
    assert Placement().demote(replace(COLD, reason=Reason.OVERFLOW), "ram", ALL) == ["disk"]


@pytest.mark.parametrize(
    ("source", "expected"), [("ram", []), ("disk", ["ram"]), ("redis", ["ram"])], ids=["ram", "disk", "redis"]
)
def test_promotion(source: str, expected: list[str]) -> None:
    facts = BlockFacts(hits=1, reason=Reason.FOUND_BELOW)
    assert Placement().promote(facts, source, ALL) == expected


@pytest.mark.parametrize("why", [{"is_available": False}, {"has_block": True}], ids=["open", "has it"])
def test_tiers_that_do_not_count(why: dict[str, bool]) -> None:
    """Neither one that is left alone nor one that has the block is written to."""
    gone = [replace(tier, **why) for tier in ALL]
    policy = Placement()
    assert policy.admit(PINNED, gone) == []
    assert policy.demote(PINNED, "ram", gone) == []
    assert policy.promote(HIT, "redis", gone) == []


def test_without_ram_evicted_blocks_go_to_disk() -> None:
    down = replace(RAM, is_available=False)
    for tiers in ([DISK, REDIS], [down, DISK, REDIS]):
        assert Placement().admit(HIT, tiers) == ["disk", "redis"]


def test_no_tiers() -> None:
    assert Placement().admit(PINNED, []) == []
