"""What a replay found."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from hotprefix.traces.settings import ReplaySettings


class Loss(StrEnum):
    """Why prompt tokens were computed, or were not counted as read though they were not."""

    COLD = "cold"
    EVICTED = "evicted"
    EXPIRED = "expired"
    ELSEWHERE = "routed elsewhere"
    BELOW_MINIMUM = "below minimum"
    ROUNDED = "rounded"


@dataclass(frozen=True, slots=True)
class Money:
    """What the vendor would bill: as it was, without a cache, and with one without limits."""

    currency: str
    actual: Decimal
    uncached: Decimal
    ideal: Decimal


@dataclass(frozen=True, slots=True)
class FirstToken:
    """Times to first token in seconds; `queued` includes waiting for the requests before."""

    mean: float
    p50: float
    p95: float
    p99: float
    queued_p50: float
    queued_p95: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Sums over a trace. `hit_*` includes what was restored; `lost` is prompt tokens by reason."""

    settings: ReplaySettings
    requests: int
    blocks: int
    hit_blocks: int
    restored_blocks: int
    ideal_blocks: int
    tokens: int
    hit_tokens: int
    counted_tokens: int
    ideal_tokens: int
    evicted: int
    aged: int
    lost: dict[Loss, int]
    first_token: FirstToken
    money: Money | None

    @property
    def block_rate(self) -> float:
        """Share of blocks that were found."""
        return self.hit_blocks / self.blocks if self.blocks else 0.0

    @property
    def token_rate(self) -> float:
        """Share of prompt tokens that were found."""
        return self.hit_tokens / self.tokens if self.tokens else 0.0

    @property
    def ideal_rate(self) -> float:
        """Share of prompt tokens that a cache without limits finds."""
        return self.ideal_tokens / self.tokens if self.tokens else 0.0

    def facts(self) -> dict[str, Any]:
        """All of it as JSON; money as text, since a JSON number is read as a float."""
        money = self.money
        return {
            **self.settings.labels,
            "capacity_blocks": self.settings.capacity,
            "tier_blocks": self.settings.tier,
            "replicas": self.settings.replicas,
            "requests": self.requests,
            "blocks": self.blocks,
            "hit_blocks": self.hit_blocks,
            "restored_blocks": self.restored_blocks,
            "block_hit_rate": self.block_rate,
            "prompt_tokens": self.tokens,
            "hit_tokens": self.hit_tokens,
            "counted_tokens": self.counted_tokens,
            "token_hit_rate": self.token_rate,
            "ideal_block_hit_rate": self.ideal_blocks / self.blocks if self.blocks else 0.0,
            "ideal_token_hit_rate": self.ideal_rate,
            "evicted_blocks": self.evicted,
            "expired_blocks": self.aged,
            "lost_tokens": {reason.value: self.lost.get(reason, 0) for reason in Loss},
            "first_token_seconds": {
                name: getattr(self.first_token, name) for name in self.first_token.__slots__
            },
            "money": None
            if money is None
            else {
                "currency": money.currency,
                "actual": f"{money.actual:f}",
                "uncached": f"{money.uncached:f}",
                "ideal": f"{money.ideal:f}",
            },
        }
