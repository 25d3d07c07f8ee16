"""What a plan is for, and what may be chosen."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from hotprefix.doctor.plan.errors import PlanError
from hotprefix.kv.policy import POLICIES
from hotprefix.traces.routing import Routing

GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Prices:
    """Money an hour: of a replica, and of a GiB of its memory for keys and values."""

    replica: Decimal = Decimal(1)
    gib: Decimal = Decimal(0)
    currency: str = ""

    def of(self, replicas: int, memory: int) -> Decimal:
        """Of so many replicas with so many bytes each."""
        return replicas * (self.replica + self.gib * memory / GIB)


@dataclass(frozen=True, slots=True)
class PlanWish:
    """`share` of the requests get their first token within `target` seconds. `memories` are bytes for keys
    and values of one replica, `most` the largest number of replicas.

    `policy` evicts. LRU is several times faster to simulate than what servers do by default, which keeps at
    least as much.
    """

    target: float
    memories: tuple[int, ...]
    bytes_per_token: float
    routings: tuple[Routing, ...] = (Routing.AFFINITY, Routing.ROUND_ROBIN)
    share: float = 0.95
    servers: int = 1
    most: int = 64
    policy: str = "lru"
    lifetime: float | None = None
    warmup: float = 0.1
    prices: Prices = Prices()

    def __post_init__(self) -> None:
        if not self.memories or not self.routings or self.target <= 0 or self.most < 1:
            raise PlanError("A plan needs a target, a memory size, a routing and a replica at least.")
        if self.policy not in POLICIES:
            raise PlanError(
                f"There is no policy {self.policy!r}. Choose one of: {', '.join(sorted(POLICIES))}."
            )

    def capacity(self, memory: int, block: int) -> int:
        """Blocks of `block` tokens that fit. Raises `PlanError` if none does."""
        blocks = int(memory / (self.bytes_per_token * block))
        if blocks < 1:
            raise PlanError(
                f"{memory:,} bytes hold no block of {block} tokens at {self.bytes_per_token:,.0f} bytes a "
                "token. Give more --memory."
            )
        return blocks
