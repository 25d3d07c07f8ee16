"""Which tier takes which block: a pure policy. The table is in `docs/TIERS.md`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.tiers.facts import BlockFacts, Reason

DEFAULT_BANDWIDTH = {"ram": 2e9, "disk": 400e6, "redis": 250e6}
"""Bytes a second that a tier reads, until enough was read to know."""


@dataclass(frozen=True, slots=True)
class TierFacts:
    """A tier as the policy sees it. `has_block`: an index says that the block is there already."""

    name: str
    is_available: bool = True
    has_block: bool = False
    read_bandwidth: float | None = None


@dataclass(frozen=True, slots=True)
class Costs:
    """What recomputing costs: seconds for a token, and for each token before it (attention).

    The defaults are for 135 M parameters at 80 GFLOP/s: 2 N = 212 MFLOP a token, and 4 L H d =
    69 kFLOP for each token before. `block_bytes` is a block's payload.
    """

    seconds_per_token: float = 2.7e-3
    seconds_per_token_before: float = 8.6e-7
    block_bytes: int = 737_280

    def recompute(self, position: int, tokens: int) -> float:
        """Seconds to compute `tokens` tokens behind `position` others."""
        before = position + tokens / 2
        return tokens * (self.seconds_per_token + self.seconds_per_token_before * before)

    def load(self, bandwidth: float) -> float:
        """Seconds to read a block."""
        return self.block_bytes / bandwidth


class Placement:
    """The default policy. `margin`: how many times longer than its read a block that was never hit
    must take to recompute, so that the disk takes it: about one in so many has to be asked for again.
    """

    def __init__(self, costs: Costs | None = None, margin: float = 20.0) -> None:
        self._costs = costs or Costs()
        self._margin = margin

    def admit(self, facts: BlockFacts, tiers: Sequence[TierFacts]) -> list[str]:
        """The tiers that a block from the arena goes to. `tiers` are in order, the fastest first."""
        usable = [tier for tier in tiers if tier.is_available and not tier.has_block]
        return [tier.name for tier in usable if self._takes(tier, facts, tiers)]

    def demote(self, facts: BlockFacts, source: str, tiers: Sequence[TierFacts]) -> list[str]:
        """The tiers that a record goes to when `source` has no room for it."""
        names = [tier.name for tier in tiers]
        below = tiers[names.index(source) + 1 :]
        usable = [tier for tier in below if tier.is_available and not tier.has_block]
        return [tier.name for tier in usable if self._is_worth_keeping(tier, facts)]

    def promote(self, facts: BlockFacts, source: str, tiers: Sequence[TierFacts]) -> list[str]:
        """The tiers that a record found in `source` goes to as well."""
        names = [tier.name for tier in tiers]
        above = tiers[: names.index(source)]
        return [
            tier.name for tier in above if tier.name == "ram" and tier.is_available and not tier.has_block
        ]

    def _takes(self, tier: TierFacts, facts: BlockFacts, tiers: Sequence[TierFacts]) -> bool:
        if tier.name == "ram":
            # An idle block is in memory already, and memory does not outlive the process.
            return facts.reason is Reason.EVICTED
        if tier.name == "disk" and facts.reason is Reason.EVICTED:
            # RAM hands it on when it has no room; a pinned block is written at once.
            has_ram = any(other.name == "ram" and other.is_available for other in tiers)
            return facts.pinned or (not has_ram and self._is_worth_keeping(tier, facts))
        return self._is_worth_keeping(tier, facts)

    def _is_worth_keeping(self, tier: TierFacts, facts: BlockFacts) -> bool:
        if facts.hits > 0 or facts.pinned:
            return True
        if tier.name != "disk":
            return False
        bandwidth = tier.read_bandwidth or DEFAULT_BANDWIDTH["disk"]
        recompute = self._costs.recompute(facts.position, facts.tokens)
        return recompute >= self._margin * self._costs.load(bandwidth)
