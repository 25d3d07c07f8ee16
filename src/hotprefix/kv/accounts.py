"""How many blocks of the tree each tenant has, and what it may have.

A tenant's *floor* is a number of blocks that requests of others can't evict. Floors are paid out of
a fixed reserve: no sequence is ever promised more than the pool without it, so a request that runs
alone always finds room and nobody waits for ever. A *ceiling* bounds what a tenant may keep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from hotprefix.base.ids import BlockKey


class QuotaMode(StrEnum):
    """What happens to a tenant at its ceiling.

    BORROW keeps more while there is room, and gives it up before anybody else has to; REPLACE drops
    the tenant's own worst blocks when a request ends; REJECT keeps no new blocks.
    """

    BORROW = "borrow"
    REPLACE = "replace"
    REJECT = "reject"


class Outcome(StrEnum):
    """Why blocks were not kept: one counter each.

    CAPACITY: room was needed; CEILING: the same, and a tenant above its ceiling paid; REPLACED: a
    tenant at its ceiling replaced its own; REJECTED: a tenant at its ceiling kept nothing new.
    """

    CAPACITY = "capacity"
    CEILING = "ceiling"
    REPLACED = "replaced"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True)
class Limits:
    """A tenant's share of the tree in blocks; `ceiling` None is no limit."""

    floor: int = 0
    ceiling: int | None = None
    mode: QuotaMode = QuotaMode.BORROW

    def __post_init__(self) -> None:
        if self.floor < 0 or (self.ceiling is not None and self.ceiling < self.floor):
            raise ValueError("a floor is not negative, and a ceiling not below its floor")


UNLIMITED = Limits()


class Account:
    """One tenant's blocks in the tree: `cached` in all, `held` of them by leases."""

    __slots__ = ("cached", "held", "limits", "owner")

    def __init__(self, owner: BlockKey) -> None:
        self.owner = owner
        self.limits = UNLIMITED
        self.cached = 0
        self.held = 0

    @property
    def unheld(self) -> int:
        """Blocks that nobody uses right now."""
        return self.cached - self.held

    @property
    def protected(self) -> int:
        """Unheld blocks that requests of others can't evict."""
        return protected_blocks(self.cached, self.held, self.limits.floor)

    @property
    def surplus(self) -> int:
        """Blocks above the ceiling."""
        ceiling = self.limits.ceiling
        return 0 if ceiling is None else max(0, self.cached - ceiling)

    @property
    def is_full(self) -> bool:
        """Whether the ceiling is reached."""
        ceiling = self.limits.ceiling
        return ceiling is not None and self.cached >= ceiling

    def gives_to(self, asker: BlockKey | None) -> bool:
        """Whether a request of `asker` may evict a block of this account now."""
        return self.unheld > (0 if asker == self.owner else self.protected)


def protected_blocks(cached: int, held: int, floor: int) -> int:
    """Held blocks count toward the floor; of the others as many are protected as are missing to it."""
    return max(0, min(cached - held, floor - held))


class Accounts:
    """The accounts of all tenants with blocks or limits, by the root of the tenant's scope.

    `reserve` is the most that all floors together may have, in blocks.
    """

    def __init__(self, reserve: int = 0) -> None:
        self.reserve = reserve
        self.outcomes: Counter[Outcome] = Counter(dict.fromkeys(Outcome, 0))
        self._accounts: dict[BlockKey, Account] = {}
        self._floors = 0
        self._protected = 0

    def __len__(self) -> int:
        """Tenants with blocks or limits."""
        return len(self._accounts)

    @property
    def all(self) -> Iterable[Account]:
        """Every account, for checkers and gauges."""
        return self._accounts.values()

    @property
    def floors(self) -> int:
        """Sum of the floors."""
        return self._floors

    def find(self, owner: BlockKey) -> Account | None:
        """The account of a tenant with blocks or limits."""
        return self._accounts.get(owner)

    def open(self, owner: BlockKey) -> Account:
        """The account of a tenant that is getting a block or a limit."""
        account = self._accounts.get(owner)
        if account is None:
            account = self._accounts[owner] = Account(owner)
        return account

    def limit(self, owner: BlockKey, limits: Limits) -> Account:
        """Set a tenant's limits. Raises `ValueError` if the floors would exceed the reserve."""
        known = self._accounts.get(owner)
        floors = self._floors + limits.floor - (known.limits.floor if known is not None else 0)
        if floors > self.reserve:
            raise ValueError(f"the floors would take {floors} blocks, and {self.reserve} are reserved")
        account = self.open(owner)
        self._protected -= account.protected
        account.limits = limits
        self._protected += account.protected
        self._floors = floors
        self.forget(account)
        return account

    def note(self, account: Account, cached: int, held: int) -> None:
        """The account's numbers change by so much."""
        if not account.limits.floor:
            account.cached += cached
            account.held += held
            return
        self._protected -= account.protected
        account.cached += cached
        account.held += held
        self._protected += account.protected

    def forget(self, account: Account) -> None:
        """Drop an account that says nothing any more."""
        if not account.cached and account.limits == UNLIMITED:
            self._accounts.pop(account.owner, None)

    def protected_from(self, asker: BlockKey | None) -> int:
        """Unheld blocks that a request of `asker` can't evict."""
        own = self._accounts.get(asker) if asker is not None else None
        return self._protected - (own.protected if own is not None else 0)
