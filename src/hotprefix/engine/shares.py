"""Tenants' shares of the cache, as the engine's thread sets them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hotprefix.base.ids import BlockKey
from hotprefix.cache.base import KvCache
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.shares import set_shares
from hotprefix.kv.accounts import UNLIMITED
from hotprefix.tenants.quota import TenantQuota, granted


class Shares:
    """Who has how much of `cache`; `root_for` gives a tenant's root.

    A cache that keeps nothing has no shares.
    """

    def __init__(self, cache: KvCache, root_for: Callable[[str], BlockKey]) -> None:
        self._cache = cache if isinstance(cache, PrefixCache) else None
        self._root_for = root_for
        self._roots: dict[str, BlockKey] = {}

    def grant(self, quotas: Sequence[TenantQuota]) -> tuple[str, ...]:
        """Put these quotas in the place of all others. Returns the tenants whose floor is cut: the reserve
        for floors does not hold it."""
        if self._cache is None:
            return ()
        limits, short = granted(quotas, self._cache.block_size, self._cache.tree.accounts.reserve)
        shares = {tenant: share for tenant, share in limits.items() if share != UNLIMITED}
        self._roots = {tenant: self._root_for(tenant) for tenant in shares}
        set_shares(self._cache, {self._roots[tenant]: share for tenant, share in shares.items()})
        return tuple(short)

    def cached(self) -> dict[str, int]:
        """Blocks that each tenant with a share has in the cache."""
        if self._cache is None:
            return {}
        accounts = [(tenant, self._cache.tree.accounts.find(root)) for tenant, root in self._roots.items()]
        return {tenant: account.cached for tenant, account in accounts if account is not None}


def floor_reserve(blocks: int, context_blocks: int, wanted: int) -> int:
    """Blocks of an arena of `blocks` that floors may take, now or later.

    What one request may have is the arena without them. So it is half of the arena, or less where half
    can't hold a whole context; floors that are `wanted` from the start may cost room for contexts.
    """
    return min(blocks // 2, max(wanted, blocks - context_blocks))
