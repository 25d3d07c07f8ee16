"""Which prefixes of the tree are worth most: for people who look at it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from heapq import heappop, heappush, nlargest
from itertools import count, islice

from hotprefix.base.ids import BlockKey
from hotprefix.keys.chain import TOKEN_BYTES
from hotprefix.kv.node import Node
from hotprefix.kv.tree import BlockTree


@dataclass(frozen=True, slots=True)
class TopLimits:
    """How much is looked at and shown: `visits` bounds the time that the tree's thread spends, `head` and
    `tail` are the blocks whose tokens are given, of the beginning and the end of each path."""

    paths: int = 20
    visits: int = 2_500
    head: int = 16
    tail: int = 2


@dataclass(frozen=True, slots=True)
class TopPath:
    """A prefix up to where its reuse ends or thins out.

    `hits` is how often its last block was reused since it came into the tree; `reused` are the tokens
    that the part behind the next shorter path saved, a block that was copied in part counted whole.
    So the sum of `reused` over all paths counts nothing twice. `owner` is the root of the tenant that it
    is counted for, `is_joint` if it begins behind a public prefix. `branches` go on from it; `is_held`
    while requests or pins hold it. `head` and `tail` are encoded tokens.
    """

    key: BlockKey
    owner: BlockKey
    is_joint: bool
    tokens: int
    hits: int
    reused: int
    branches: int
    is_held: bool
    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True)
class TopPaths:
    """The best first. Unless it `is_complete`, blocks that were reused least have not been looked at."""

    paths: tuple[TopPath, ...] = ()
    visited: int = 0
    is_complete: bool = True


NO_PATHS = TopPaths()


def top_paths(tree: BlockTree, limits: TopLimits, owners: Collection[BlockKey] | None = None) -> TopPaths:
    """The paths that saved most, of the tenants with these roots or of all.

    A block is reused at most as often as the one before it, so the most used are looked at first.
    """
    search = _Search(limits)
    for root in tree.roots:
        if owners is None or tree.account_of(root).owner in owners:
            search.push(root, 0)
    search.run()
    best = nlargest(limits.paths, search.ends, key=lambda end: end[:2])
    paths = tuple(_shown(tree, node, saved, limits) for saved, _, node in best)
    return TopPaths(paths, search.visited, search.is_complete)


class _Search:
    """Best first; `ends` are tokens saved, when last used, and the last block of a path."""

    def __init__(self, limits: TopLimits) -> None:
        self._limits = limits
        self._heap: list[tuple[int, int, int, Node, int]] = []
        self._order = count()
        self.ends: list[tuple[int, int, Node]] = []
        self.visited = 0
        self.is_complete = True

    def push(self, parent: Node, saved: int) -> None:
        """Look at a block's children later, youngest first; one of them goes on with what was `saved`."""
        room = self._limits.visits - self.visited
        for child in islice(reversed(parent.children.values()), room):
            goes_on = not parent.is_root and child.hits == parent.hits
            entry = -child.hits, -child.touched, next(self._order), child, saved if goes_on else 0
            heappush(self._heap, entry)
            saved = 0 if goes_on else saved
        self.visited += min(room, len(parent.children))
        self.is_complete = self.is_complete and len(parent.children) <= room

    def run(self) -> None:
        """Until all that was reused has been seen, and enough paths even if they were not."""
        while self._heap:
            hits, touched, _, node, saved = heappop(self._heap)
            if not hits and len(self.ends) >= self._limits.paths:
                return
            saved += node.hits * (len(node.tokens) // TOKEN_BYTES)
            if _ends_here(node):
                self.ends.append((saved, -touched, node))
                saved = 0
            self.push(node, saved)


def _ends_here(node: Node) -> bool:
    if not node.hits:
        return not node.children
    return all(child.hits < node.hits for child in node.children.values())


def _shown(tree: BlockTree, node: Node, reused: int, limits: TopLimits) -> TopPath:
    path, owner = node.path(), tree.account_of(node).owner
    head, tail = path[: limits.head], path[limits.head :]
    return TopPath(
        key=node.key,
        owner=owner,
        is_joint=node.top.key != owner,
        tokens=sum(len(one.tokens) for one in path) // TOKEN_BYTES,
        hits=node.hits,
        reused=reused,
        branches=len(node.children),
        is_held=bool(node.holders),
        head=b"".join(one.tokens for one in head),
        tail=b"".join(one.tokens for one in tail[-limits.tail :]) if limits.tail else b"",
    )
