"""Prefix reuse: the `KvCache` that keeps what it computed in a tree and finds it again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.cache.base import BlockCopier, CacheGauges, ReusePlan, Room
from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import Logits, LogitsStore
from hotprefix.cache.lookup import Lookup
from hotprefix.cache.recut import Places, Recut, RecutPlan
from hotprefix.cache.regulars import Regulars
from hotprefix.cache.rules import ReuseRules
from hotprefix.keys.chain import TOKEN_BYTES, TokenHistory
from hotprefix.kv.accounts import Limits, Outcome, QuotaMode, protected_blocks
from hotprefix.kv.lease import Lease, LeaseBook
from hotprefix.kv.node import Node
from hotprefix.kv.policy.quota import QuotaPolicy
from hotprefix.kv.pool import BlockPool, BlockState
from hotprefix.kv.tree import BlockTree


class PrefixCache:
    """See `KvCache` for the verbs. Owns tree, pool and leases; the bytes move by `copier`.

    With `quotas`, whose policy in force must be the tree's, tenants can have floors and ceilings.
    `regulars` say which short prompts are kept. `on_evicted` are told of every block that makes room, while
    its bytes are still there, `on_sealed` of every block that can be found from now on.
    """

    def __init__(
        self,
        pool: BlockPool,
        tree: BlockTree,
        rules: ReuseRules,
        logits: LogitsStore,
        copier: BlockCopier,
        quotas: QuotaPolicy | None = None,
        regulars: Regulars | None = None,
    ) -> None:
        self.pool = pool
        self.tree = tree
        self.rules = rules
        self.logits = logits
        self.leases = LeaseBook(tree)
        self.lookup = Lookup(tree, rules)
        self.quotas = quotas
        self.regulars = Regulars() if regulars is None else regulars
        self.evictions = EvictionLog()
        self.on_evicted: list[Callable[[Node], None]] = [self.evictions.evicted]
        self.on_sealed: list[Callable[[Node], None]] = [self.evictions.sealed]
        self._copier = copier
        self._evicted = 0
        self._epoch = 0

    @property
    def block_size(self) -> int:
        return self.rules.block_size

    @property
    def is_shared(self) -> bool:
        return True

    @property
    def usable_blocks(self) -> int:
        return self.pool.size - self.tree.accounts.reserve

    def chunk_end(self, start: int, wanted: int, total: int) -> int:
        return self.rules.chunk_end(start, wanted, total)

    def redo_from(self, computed: int) -> int:
        return self.rules.redo_from(computed)

    def plan(self, history: TokenHistory, room: Room | None = None) -> ReusePlan:
        total, size = len(history), self.block_size
        room = Room(total, total) if room is None else room
        match = self.lookup.match(history)
        matched = len(match.nodes) * size + match.partial_tokens
        logits = None
        reused = self.rules.reusable_within(matched, room.reusable, total)
        if matched == total == room.reusable:
            logits = self.logits.get(history.key_at(total))
            reused = total if logits is not None else reused
        shared, rest = divmod(reused, size)
        source = None
        if rest:
            source = match.nodes[shared] if shared < len(match.nodes) else match.partial
        blocks = -(-room.tokens // size)
        nodes = match.nodes[:shared]
        return ReusePlan(reused, blocks - shared, nodes, source, logits, self._epoch, history.root)

    def spare(self, plan: ReusePlan) -> int:
        kept = Counter(self.tree.account_of(node) for node in plan.nodes if not node.holders)
        room = self.tree.evictable_by(plan.owner) - sum(kept.values())
        for account, count in kept.items():
            if account.limits.floor and account.owner != plan.owner:
                # What this request holds counts toward the floor, so fewer of the others are protected.
                room += account.protected - protected_blocks(
                    account.cached, account.held + count, account.limits.floor
                )
        return self.pool.free + room - plan.fresh

    def open(self, history: TokenHistory, plan: ReusePlan) -> Holding | None:
        if plan.epoch != self._epoch:
            raise LogicError("the plan is stale: the tree has changed since it was made")
        if self.spare(plan) < 0:
            return None
        lease = self.leases.issue(plan.nodes)
        source, owner = plan.source, history.root
        if source is None:
            blocks = self._take(plan.fresh, owner)
        else:
            blocks = self._take_copy(source, plan.fresh, owner)
        if blocks is None:
            raise LogicError("the room that was counted is not there")
        self.tree.touch(plan.nodes if source is None or source.parent is None else (*plan.nodes, source))
        holding = Holding(history, [node.block for node in plan.nodes] + blocks, lease, plan.reused)
        holding.keepable = self.regulars.meet(history, len(plan.nodes))
        return holding

    def grow(self, holding: Holding, tokens: int) -> bool:
        missing = -(-tokens // self.block_size) - len(holding.table)
        if missing <= 0:
            return True
        owner = holding.history.root
        blocks = self._take(missing, owner)
        if blocks is None and self._give_duplicates_back(holding):
            blocks = self._take(missing, owner)
        if blocks is None:
            return False
        holding.table.extend(blocks)
        holding.private.update(blocks)
        return True

    def recut(self, holding: Holding, kept: Places) -> Recut | None:
        plan, lease = RecutPlan(holding, kept), self._lease(holding)
        left = lease.shorten(plan.front)
        blocks = self._take(max(0, plan.missing), holding.history.root)
        if blocks is None:
            for node in left:
                lease.extend(node)
            return None
        return plan.carry_out(blocks)

    def commit(self, holding: Holding) -> None:
        full = self._publishable(holding) // self.block_size
        if full <= holding.sealed:
            return
        history, lease = holding.history, self._lease(holding)
        keys = history.keys(full)
        for index in range(holding.sealed, full):
            key = keys[index]
            node = self.tree.child(lease.last, history.root_of(index), key)
            if node is None:
                if self._refuses(history, index):
                    full = index
                    break
                node = self._seal(holding, lease.last, index)
            lease.extend(node)
        holding.sealed = full

    def keep_logits(self, holding: Holding, logits: Logits) -> None:
        if holding.dropped or self._publishable(holding) < holding.computed:
            return
        self.logits.put(holding.history.key_at(holding.computed), logits)
        if self.rules.granularity > 1:
            # The block will be quantised anew as the answer fills it: keep it as it is now.
            self.share_tail(holding)

    def share_tail(self, holding: Holding) -> None:
        """Offer the partial last block as a copy; does nothing if there is none or no room."""
        length, lease = holding.computed, self._lease(holding)
        full = length // self.block_size
        if self._publishable(holding) < length:
            return
        tokens = holding.history.encoded(full * self.block_size, length)
        if not tokens or holding.sealed != full or self._refuses(holding.history, full):
            return
        key = holding.history.key_at(length)
        if self.tree.child(lease.last, holding.history.root_of(full), key) is not None:
            return
        copy = self._take(1, holding.history.root)
        if copy is None:
            return
        self._copier.copy(holding.table[full], copy[0])
        self._insert(holding.history, length, lease.last, copy[0])

    def close(self, holding: Holding) -> None:
        self.commit(holding)
        lease = self._lease(holding)
        self._publish_tail(holding)
        self._count_rejected(holding)
        lease.release()
        holding.lease = None
        self._replace_surplus(holding.history)
        self.pool.release(holding.private)
        holding.private.clear()

    def whole_path(self, history: TokenHistory) -> list[Node] | None:
        """The blocks that hold all of `history`; None if some are missing.

        In quantised formats a partial last block may be left out: it could not be reused anyway.
        """
        full, rest = divmod(len(history), self.block_size)
        match = self.lookup.match(history)
        if len(match.nodes) < full:
            return None
        path = list(match.nodes)
        if match.partial is not None and match.partial_tokens == rest:
            return [*path, match.partial]
        return path if not rest or self.rules.granularity > 1 else None

    def known(self, history: TokenHistory) -> tuple[Node, ...]:
        """The full blocks of `history` that are here, from the start."""
        return self.lookup.walk(history, len(history) // self.block_size)

    def adopt(
        self, history: TokenHistory, length: int, lease: Lease, fill: Callable[[BlockId], None]
    ) -> bool:
        """Put a block that was computed earlier into the tree, as the next of a leased path.

        It ends the first `length` tokens of `history`; `fill` sets its bytes. False, and nothing
        changed, if there is no room or its tenant may not keep more.
        """
        index = (length - 1) // self.block_size
        node = self.tree.child(lease.last, history.root_of(index), history.key_at(length))
        if node is None:
            if self._refuses(history, index):
                return False
            taken = self._take(1, history.root)
            if taken is None:
                return False
            fill(taken[0])
            node = self._insert(history, length, lease.last, taken[0])
        lease.extend(node)
        return True

    def limit(self, owner: BlockKey, limits: Limits) -> None:
        """Set the share of the tenant with this root. Raises `ValueError` if the floors don't fit."""
        if self.quotas is None:
            raise LogicError("this cache has no quotas")
        self.quotas.limit(owner, limits, list(self.tree.nodes_of(owner)))
        self.tree.policy = self.quotas.in_force

    def gauges(self) -> CacheGauges:
        return CacheGauges(
            total=self.pool.size,
            free=self.pool.free,
            private=self.pool.count(BlockState.PRIVATE),
            cached=len(self.tree),
            held=len(self.tree) - self.tree.evictable,
            logits_bytes=self.logits.bytes,
            evicted=self._evicted,
            not_kept=self._not_kept(),
        )

    def _not_kept(self) -> dict[Outcome, int]:
        counted = self.tree.accounts.outcomes
        others = counted[Outcome.CEILING] + counted[Outcome.REPLACED]
        return {**counted, Outcome.CAPACITY: self._evicted - others}

    def private_blocks(self, holdings: Iterable[Holding]) -> list[BlockId]:
        """Every block owned by one sequence alone, for `invariants.check`."""
        return [block for holding in holdings for block in holding.private]

    def _publishable(self, holding: Holding) -> int:
        if holding.dropped:
            return holding.sealed * self.block_size
        computed = holding.computed if self.rules.keep_decoded else holding.prefilled
        return self.regulars.limit(holding.history, holding.keepable, computed)

    def _insert(self, history: TokenHistory, length: int, parent: Node | None, block: BlockId) -> Node:
        """Seal `block`, which ends the first `length` tokens, and put it behind `parent`."""
        index = (length - 1) // self.block_size
        root, owner = history.root_of(index), history.owner_of(index)
        tokens = history.encoded(index * self.block_size, length)
        node = self.tree.insert(root, parent, history.key_at(length), tokens, block, owner)
        node.index = index
        for tell in self.on_sealed:
            tell(node)
        self.pool.seal(block)
        self._epoch += 1
        return node

    def _seal(self, holding: Holding, parent: Node | None, index: int) -> Node:
        history, block = holding.history, holding.table[index]
        node = self._insert(history, (index + 1) * self.block_size, parent, block)
        holding.private.discard(block)
        if self.rules.granularity == 1:
            # In other formats the tail holds bytes that the whole block does not.
            self._drop(self.tree.subsumed(node))
        return node

    def _publish_tail(self, holding: Holding) -> None:
        length = self._publishable(holding)
        full = length // self.block_size
        tokens = holding.history.encoded(full * self.block_size, length)
        history = holding.history
        if not tokens or self.rules.granularity > 1 or holding.sealed != full:
            return
        parent = self._lease(holding).last
        known, shared = self.tree.partial(self.tree.above(parent, history.root_of(full)), tokens)
        if known is not None and shared * TOKEN_BYTES == len(tokens):
            return
        if self._refuses(history, full):
            self.tree.accounts.outcomes[Outcome.REJECTED] += 1
            return
        block = holding.table[full]
        node = self._insert(history, length, parent, block)
        holding.private.discard(block)
        self._drop(self.tree.subsumed(node))

    def _drop(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.pool.evict(self.tree.remove(node))
            self._epoch += 1

    def _give_duplicates_back(self, holding: Holding) -> bool:
        """Use the tree's blocks where `holding` computed the same ones itself; whether there were any."""
        found = False
        for index, node in enumerate(self._lease(holding).nodes):
            mine = holding.table[index]
            if mine != node.block:
                holding.table[index] = node.block
                holding.private.remove(mine)
                self.pool.release((mine,))
                found = True
        return found

    def _take(self, count: int, owner: BlockKey) -> list[BlockId] | None:
        """`count` private blocks for a tenant, evicting just as many cached ones as are missing."""
        missing = count - self.pool.free
        if missing > 0:
            victims = self.tree.evict_nodes(missing, owner)
            if victims is None:
                return None
            for node in victims:
                self._tell_evicted(node)
                self.pool.evict(node.block)
            self._evicted += missing
            self._epoch += 1
        return self.pool.allocate(count)

    def _take_copy(self, source: Node, count: int, owner: BlockKey) -> list[BlockId] | None:
        """`count` private blocks, the first with the bytes of `source`, whose parent is held."""
        # The source is no part of the table; it only must outlive the copy.
        guard = self.leases.issue(source.path())
        blocks = self._take(count, owner)
        if blocks is not None:
            self._copier.copy(source.block, blocks[0])
        rest = self._take(count - 1, owner) if blocks is None and source.holders == 1 else None
        guard.release()
        if rest is None:
            return blocks
        # All else that could go has gone: there is no room for a copy, but nobody else reads it.
        block = self.tree.remove(source)
        self._tell_evicted(source)
        self.pool.reclaim(block)
        self._evicted += 1
        self._epoch += 1
        return [block, *rest]

    def _refuses(self, history: TokenHistory, index: int) -> bool:
        """Whether block `index` may not be kept: its tenant is at a ceiling that rejects."""
        account = self.tree.accounts.find(history.owner_of(index))
        return account is not None and account.is_full and account.limits.mode is QuotaMode.REJECT

    def _count_rejected(self, holding: Holding) -> None:
        full, rest = divmod(self._publishable(holding), self.block_size)
        if full > holding.sealed:
            tail = 1 if rest and self.rules.granularity == 1 else 0
            self.tree.accounts.outcomes[Outcome.REJECTED] += full - holding.sealed + tail

    def _replace_surplus(self, history: TokenHistory) -> None:
        """Drop the worst blocks of whoever has more than a ceiling that replaces."""
        if self.quotas is None:
            return
        for owner in {history.owner_of(0), history.root}:
            account = self.tree.accounts.find(owner)
            if account is None or account.limits.mode is not QuotaMode.REPLACE:
                continue
            while account.surplus and (node := self.quotas.pop_of(account)) is not None:
                self._tell_evicted(node)
                self._drop((node,))
                self._evicted += 1
                self.tree.accounts.outcomes[Outcome.REPLACED] += 1

    def _tell_evicted(self, node: Node) -> None:
        for tell in self.on_evicted:
            tell(node)

    @staticmethod
    def _lease(holding: Holding) -> Lease:
        if holding.lease is None:
            raise LogicError("the holding is closed")
        return holding.lease
