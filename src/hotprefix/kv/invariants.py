"""The bookkeeping's invariants as one function, run by tests after every step.

The numbers are those of `docs/INVARIANTS.md`. Raises `LogicError` naming the first one broken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.keys.chain import TOKEN_BYTES, child_key
from hotprefix.kv.accounts import UNLIMITED
from hotprefix.kv.lease import LeaseBook
from hotprefix.kv.node import Node
from hotprefix.kv.pool import BlockPool, BlockState
from hotprefix.kv.tree import BlockTree


def check(tree: BlockTree, pool: BlockPool, book: LeaseBook, private: Iterable[BlockId]) -> None:
    """Verify I1–I6, I8 and I12 (no root without blocks) for one pool.

    `private` is every block that a sequence owns alone.
    """
    nodes = _walk(tree)
    _check_ownership(pool, nodes, list(private))
    _check_holders(tree, book, nodes)
    _check_shape(tree, nodes)
    _check_accounts(tree, nodes)


def _walk(tree: BlockTree) -> list[Node]:
    nodes: list[Node] = []
    stack = list(tree.roots)
    for root in stack:
        _require(bool(root.children), "I12", f"the scope {root.key.hex()[:8]} has no block and is kept")
    while stack:
        node = stack.pop()
        for child in node.children.values():
            _require(child.parent is node, "I5", f"{child!r} does not know its parent")
            nodes.append(child)
            stack.append(child)
    return nodes


def _check_ownership(pool: BlockPool, nodes: list[Node], private: list[BlockId]) -> None:
    sealed = [node.block for node in nodes]
    free = pool.free_ids()
    total = len(free) + len(private) + len(sealed)
    _require(total == pool.size, "I1", f"{total} blocks are accounted for, not {pool.size}")
    _require(len(set(free + private + sealed)) == total, "I2", "a block is in two places")
    for blocks, state in (
        (free, BlockState.FREE),
        (private, BlockState.PRIVATE),
        (sealed, BlockState.SEALED),
    ):
        _require(pool.count(state) == len(blocks), "I1", f"the pool counts {state.name} wrong")
        for block in blocks:
            _require(pool.state(block) is state, "I2", f"block {block} should be {state.name}")


def _check_holders(tree: BlockTree, book: LeaseBook, nodes: list[Node]) -> None:
    named = Counter(node for lease in book.open for node in lease.nodes)
    _require(named.keys() <= set(nodes), "I3", "a lease names a block that is not in the tree")
    for node in nodes:
        _require(node.holders == named[node], "I3", f"{node!r} is named by {named[node]} leases")
        parent = node.parent
        if node.holders and parent is not None and not parent.is_root:
            _require(parent.holders > 0, "I5", f"{node!r} is held, its parent is not")
    unheld = sum(1 for node in nodes if not node.holders)
    _require(unheld == tree.evictable, "I6", f"{unheld} blocks can go, the tree says {tree.evictable}")
    candidates = sum(1 for node in nodes if node.is_candidate)
    _require(candidates == len(tree.policy), "I5", "the policy's candidates are not the free leaves")


def _check_shape(tree: BlockTree, nodes: list[Node]) -> None:
    _require(len(nodes) == len(tree), "I1", "the tree counts its nodes wrong")
    full = tree.block_size * TOKEN_BYTES
    seen: set[BlockKey] = set()
    for node in nodes:
        parent = node.parent
        _require(parent is not None, "I5", f"{node!r} has lost its parent")
        assert parent is not None
        _require(node.key == child_key(parent.key, node.tokens), "I8", f"{node!r}'s key is not its content's")
        _require(node.key not in seen, "I8", f"{node!r}'s key is in two places")
        seen.add(node.key)
        _require(
            len(node.tokens) in range(TOKEN_BYTES, full + 1, TOKEN_BYTES), "I4", f"{node!r} is malformed"
        )
        _require(not node.children or len(node.tokens) == full, "I4", f"the tail {node!r} has children")


def _check_accounts(tree: BlockTree, nodes: list[Node]) -> None:
    accounts = tree.accounts
    for node in nodes:
        parent = node.parent
        _require(parent is not None and node.top is parent.top, "I5", f"{node!r} does not know its root")
    for root in tree.roots:
        account = root.account
        known = account is not None and accounts.find(account.owner) is account
        _require(known, "I1", f"the scope {root.key.hex()[:8]} is in no account")
    cached = Counter(tree.account_of(node) for node in nodes)
    held = Counter(tree.account_of(node) for node in nodes if node.holders)
    protected = floors = 0
    for account in accounts.all:
        counted = (cached[account], held[account])
        _require((account.cached, account.held) == counted, "I1", "an account counts its blocks wrong")
        _require(bool(account.cached) or account.limits != UNLIMITED, "I12", "an empty account is kept")
        floors += account.limits.floor
        # Of the unheld blocks, those that others may take leave the floor whole.
        free = counted[0] - counted[1]
        protected += free - min(free, max(0, counted[0] - account.limits.floor))
    _require(floors == accounts.floors, "I6", "the floors are summed up wrong")
    _require(floors <= accounts.reserve, "I6", "the floors exceed the reserve")
    by_strangers = tree.evictable - protected
    _require(tree.evictable_by(None) == by_strangers, "I6", f"{by_strangers} blocks can go to a stranger")


def _require(condition: bool, number: str, message: str) -> None:
    if not condition:
        raise LogicError(f"{number}: {message}")
