"""Changing the shares of all tenants at once, while requests run."""

from __future__ import annotations

from collections.abc import Mapping

from hotprefix.base.ids import BlockKey
from hotprefix.cache.prefix import PrefixCache
from hotprefix.kv.accounts import UNLIMITED, Limits


def set_shares(cache: PrefixCache, shares: Mapping[BlockKey, Limits]) -> None:
    """Give the tenants with these roots these limits, and all others none.

    Only what differs is touched; a change costs a look at each block of its tenant. Raises
    `ValueError` if the floors exceed the reserve.
    """
    before = {account.owner: account.limits for account in cache.tree.accounts.all}

    def rise(owner: BlockKey) -> int:
        return _of(shares, owner).floor - _of(before, owner).floor

    changed = {owner for owner in (*before, *shares) if _of(shares, owner) != _of(before, owner)}
    # Floors that fall make room in the reserve for those that rise.
    for owner in sorted(changed, key=rise):
        cache.limit(owner, _of(shares, owner))


def _of(shares: Mapping[BlockKey, Limits], owner: BlockKey) -> Limits:
    return shares.get(owner, UNLIMITED)
