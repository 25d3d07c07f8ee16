"""Prefix reuse: the `KvCache` that keeps what it computed in a tree and finds it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId
from hotprefix.cache.base import BlockCopier, CacheGauges, ReusePlan
from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import Logits, LogitsStore
from hotprefix.cache.rules import ReuseRules
from hotprefix.keys.chain import TOKEN_BYTES, TokenHistory
from hotprefix.kv.lease import Lease, LeaseBook
from hotprefix.kv.node import Node
from hotprefix.kv.pool import BlockPool, BlockState
from hotprefix.kv.tree import BlockTree, Match


class PrefixCache:
    """See `KvCache` for the verbs. Owns tree, pool and leases; the bytes move by `copier`."""

    def __init__(
        self,
        pool: BlockPool,
        tree: BlockTree,
        rules: ReuseRules,
        logits: LogitsStore,
        copier: BlockCopier,
    ) -> None:
        self.pool = pool
        self.tree = tree
        self.rules = rules
        self.logits = logits
        self.leases = LeaseBook(tree)
        self._copier = copier
        self._evicted = 0
        self._epoch = 0

    @property
    def block_size(self) -> int:
        return self.rules.block_size

    @property
    def usable_blocks(self) -> int:
        return self.pool.size

    def chunk_end(self, start: int, wanted: int, total: int) -> int:
        return self.rules.chunk_end(start, wanted, total)

    def redo_from(self, computed: int) -> int:
        return self.rules.redo_from(computed)

    def plan(self, history: TokenHistory) -> ReusePlan:
        total = len(history)
        size = self.block_size
        match = self._match(history)
        matched = len(match.nodes) * size + match.partial_tokens
        logits = None
        reused = self.rules.reusable_length(matched, total)
        if matched == total:
            logits = self.logits.get(history.key_at(total))
            reused = total if logits is not None else reused
        shared, rest = divmod(reused, size)
        source = None
        if rest:
            source = match.nodes[shared] if shared < len(match.nodes) else match.partial
        blocks = -(-total // size)
        return ReusePlan(reused, blocks - shared, match.nodes[:shared], source, logits, self._epoch)

    def spare(self, plan: ReusePlan) -> int:
        kept = sum(1 for node in plan.nodes if not node.holders)
        return self.pool.free + self.tree.evictable - kept - plan.fresh

    def open(self, history: TokenHistory, plan: ReusePlan) -> Holding | None:
        if plan.epoch != self._epoch:
            raise LogicError("the plan is stale: the tree has changed since it was made")
        lease = self.leases.issue(plan.nodes)
        source = plan.source
        blocks = self._take(plan.fresh) if source is None else self._take_copy(source, plan.fresh)
        if blocks is None:
            lease.release()
            return None
        self.tree.touch(plan.nodes if source is None or source.parent is None else source.path())
        return Holding(history, [node.block for node in plan.nodes] + blocks, lease, plan.reused)

    def grow(self, holding: Holding, tokens: int) -> bool:
        missing = -(-tokens // self.block_size) - len(holding.table)
        if missing <= 0:
            return True
        blocks = self._take(missing)
        if blocks is None and self._give_duplicates_back(holding):
            blocks = self._take(missing)
        if blocks is None:
            return False
        holding.table.extend(blocks)
        holding.private.update(blocks)
        return True

    def commit(self, holding: Holding) -> None:
        full = self._publishable(holding) // self.block_size
        if full <= holding.sealed:
            return
        history, lease = holding.history, self._lease(holding)
        keys = history.keys(full)
        for index in range(holding.sealed, full):
            key = keys[index]
            node = self.tree.child(lease.last, history.root, key)
            if node is None:
                node = self._seal(holding, lease.last, index, history.block_bytes(index))
            lease.extend(node)
        holding.sealed = full

    def keep_logits(self, holding: Holding, logits: Logits) -> None:
        self.logits.put(holding.history.key_at(holding.computed), logits)
        if self.rules.granularity > 1:
            # The block will be quantised anew as the answer fills it: keep it as it is now.
            self.share_tail(holding)

    def share_tail(self, holding: Holding) -> None:
        """Offer the partial last block as a copy; does nothing if there is none or no room."""
        length = holding.computed
        full = length // self.block_size
        lease = self._lease(holding)
        tokens = holding.history.encoded(full * self.block_size, length)
        if not tokens or holding.sealed != full:
            return
        key = holding.history.key_at(length)
        if self.tree.child(lease.last, holding.history.root, key) is not None:
            return
        copy = self._take(1)
        if copy is None:
            return
        self._copier.copy(holding.table[full], copy[0])
        self.pool.seal(copy[0])
        self.tree.insert(holding.history.root, lease.last, key, tokens, copy[0])
        self._epoch += 1

    def close(self, holding: Holding) -> None:
        self.commit(holding)
        lease = self._lease(holding)
        self._publish_tail(holding)
        lease.release()
        holding.lease = None
        self.pool.release(holding.private)
        holding.private.clear()

    def whole_path(self, history: TokenHistory) -> list[Node] | None:
        """The blocks that hold all of `history`; None if some are missing.

        In quantised formats a partial last block may be left out: it could not be reused anyway.
        """
        full, rest = divmod(len(history), self.block_size)
        match = self._match(history)
        if len(match.nodes) < full:
            return None
        path = list(match.nodes)
        if match.partial is not None and match.partial_tokens == rest:
            return [*path, match.partial]
        return path if not rest or self.rules.granularity > 1 else None

    def gauges(self) -> CacheGauges:
        return CacheGauges(
            total=self.pool.size,
            free=self.pool.free,
            private=self.pool.count(BlockState.PRIVATE),
            cached=len(self.tree),
            held=len(self.tree) - self.tree.evictable,
            logits_bytes=self.logits.bytes,
            evicted=self._evicted,
        )

    def private_blocks(self, holdings: Iterable[Holding]) -> list[BlockId]:
        """Every block owned by one sequence alone, for `invariants.check`."""
        return [block for holding in holdings for block in holding.private]

    def _match(self, history: TokenHistory) -> Match:
        total, size = len(history), self.block_size
        full, rest = divmod(total, size)
        if self.rules.granularity > 1:
            return self._match_whole(history, full, rest)
        match = self.tree.match(history.root, history.keys(full), history.encoded(full * size, total))
        depth = len(match.nodes)
        if depth == full:
            return match
        last = match.nodes[-1] if match.nodes else self.tree.root_of(history.root)
        partial, shared = self.tree.partial(last, history.block_bytes(depth))
        return Match(match.nodes, partial, shared)

    def _match_whole(self, history: TokenHistory, full: int, rest: int) -> Match:
        """Whole blocks, and a partial one only if it holds just these tokens: more would spoil it."""
        nodes = self.tree.match(history.root, history.keys(full)).nodes
        if not rest or len(nodes) < full:
            return Match(nodes)
        last = nodes[-1] if nodes else None
        tail = self.tree.child(last, history.root, history.key_at(len(history)))
        return Match(nodes, tail, rest if tail is not None else 0)

    def _publishable(self, holding: Holding) -> int:
        return holding.computed if self.rules.keep_decoded else holding.prefilled

    def _seal(self, holding: Holding, parent: Node | None, index: int, tokens: bytes) -> Node:
        history, block = holding.history, holding.table[index]
        node = self.tree.insert(history.root, parent, history.keys(index + 1)[index], tokens, block)
        self.pool.seal(block)
        holding.private.discard(block)
        self._epoch += 1
        if self.rules.granularity == 1:
            # In other formats the tail holds bytes that the whole block does not.
            self._drop(self.tree.subsumed(node))
        return node

    def _publish_tail(self, holding: Holding) -> None:
        length = self._publishable(holding)
        full = length // self.block_size
        tokens = holding.history.encoded(full * self.block_size, length)
        if not tokens or self.rules.granularity > 1 or holding.sealed != full:
            return
        parent = self._lease(holding).last
        root = holding.history.root
        above = parent if parent is not None else self.tree.root_of(root)
        known, shared = self.tree.partial(above, tokens)
        if known is not None and shared * TOKEN_BYTES == len(tokens):
            return
        block = holding.table[full]
        node = self.tree.insert(root, parent, holding.history.key_at(length), tokens, block)
        self.pool.seal(block)
        holding.private.discard(block)
        self._epoch += 1
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

    def _take(self, count: int) -> list[BlockId] | None:
        """`count` private blocks, evicting just as many cached ones as are missing."""
        missing = count - self.pool.free
        if missing > 0:
            victims = self.tree.evict(missing)
            if victims is None:
                return None
            for block in victims:
                self.pool.evict(block)
            self._evicted += missing
            self._epoch += 1
        return self.pool.allocate(count)

    def _take_copy(self, source: Node, count: int) -> list[BlockId] | None:
        """`count` private blocks, the first with the bytes of `source`, whose parent is held."""
        # The source is no part of the table; it only must outlive the copy.
        guard = self.leases.issue(source.path())
        blocks = self._take(count)
        if blocks is not None:
            self._copier.copy(source.block, blocks[0])
        rest = self._take(count - 1) if blocks is None and source.holders == 1 else None
        guard.release()
        if rest is None:
            return blocks
        # All else that could go has gone: there is no room for a copy, but nobody else reads it.
        block = self.tree.remove(source)
        self.pool.reclaim(block)
        self._evicted += 1
        self._epoch += 1
        return [block, *rest]

    @staticmethod
    def _lease(holding: Holding) -> Lease:
        if holding.lease is None:
            raise LogicError("the holding is closed")
        return holding.lease
