"""Quotas around any policy: who pays is decided first, which of its blocks goes by the policy.

Tenants with limits have a policy of their own, all others share one. A tenant above its ceiling
pays first; then whoever has the block that was used longest ago, floors left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockKey
from hotprefix.kv.accounts import UNLIMITED, Account, Accounts, Limits, Outcome
from hotprefix.kv.node import Node
from hotprefix.kv.policy.base import EvictionPolicy


class QuotaPolicy:
    """Keeps apart the candidates of tenants with limits; `make` builds the policy of each part.

    One eviction costs a look at every tenant with limits, and what the inner policy costs. While no
    tenant has limits, `in_force` is the policy of all others alone, so that nothing is asked twice.
    """

    def __init__(
        self,
        make: Callable[[], EvictionPolicy],
        accounts: Accounts,
        common: EvictionPolicy | None = None,
    ) -> None:
        self.accounts = accounts
        self._make = make
        self._common = make() if common is None else common
        self._own: dict[BlockKey, tuple[Account, EvictionPolicy]] = {}
        self.name = self._common.name

    @property
    def in_force(self) -> EvictionPolicy:
        """What a tree should ask as long as no limits change."""
        return self if self._own else self._common

    def __len__(self) -> int:
        return len(self._common) + sum(len(policy) for _, policy in self._own.values())

    def inserted(self, node: Node) -> None:
        self._of(node).inserted(node)

    def touched(self, node: Node) -> None:
        self._of(node).touched(node)

    def removed(self, node: Node) -> None:
        self._of(node).removed(node)

    def add(self, node: Node) -> None:
        self._of(node).add(node)

    def discard(self, node: Node) -> None:
        self._of(node).discard(node)

    def peek(self) -> Node | None:
        part = self._stalest(None)
        return part.peek() if part is not None else None

    def pop_of(self, account: Account) -> Node | None:
        """Remove and return the worst candidate of an account with limits, if it has any."""
        known = self._own.get(account.owner)
        return known[1].pop() if known is not None and len(known[1]) else None

    def pop(self, asker: BlockKey | None = None) -> Node:
        part = self._above_ceiling(asker)
        outcome = Outcome.CEILING if part is not None else Outcome.CAPACITY
        part = part if part is not None else self._stalest(asker)
        if part is None:
            raise LogicError("there is no candidate for eviction")
        self.accounts.outcomes[outcome] += 1
        return part.pop(asker)

    def limit(self, owner: BlockKey, limits: Limits, nodes: Iterable[Node]) -> None:
        """Set a tenant's limits; `nodes` are all its blocks, which move to its own part or back.

        Raises `ValueError` if the floors would exceed the reserve.
        """
        account = self.accounts.limit(owner, limits)
        before = self._own.get(owner)
        if (before is not None) == (limits != UNLIMITED):
            return
        source = before[1] if before is not None else self._common
        if before is None:
            target = self._make()
            self._own[owner] = (account, target)
        else:
            del self._own[owner]
            target = self._common
        for node in sorted(nodes, key=lambda node: node.touched):
            source.discard(node)
            source.removed(node)
            target.inserted(node)
            if node.is_candidate:
                target.add(node)

    def _of(self, node: Node) -> EvictionPolicy:
        account = node.top.account
        known = self._own.get(account.owner) if account is not None else None
        return known[1] if known is not None else self._common

    def _above_ceiling(self, asker: BlockKey | None) -> EvictionPolicy | None:
        most, worst = 0, None
        for account, policy in self._own.values():
            if account.surplus > most and len(policy) and account.gives_to(asker):
                most, worst = account.surplus, policy
        return worst

    def _stalest(self, asker: BlockKey | None) -> EvictionPolicy | None:
        parts = [policy for account, policy in self._own.values() if account.gives_to(asker)]
        found: EvictionPolicy | None = None
        oldest = 0
        for policy in (self._common, *parts):
            node = policy.peek()
            if node is not None and (found is None or node.touched < oldest):
                found, oldest = policy, node.touched
        return found
