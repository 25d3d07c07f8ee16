"""A lease: the right to use a path of blocks until it is released."""

from __future__ import annotations

from collections.abc import Sequence

from hotprefix.base.errors import LogicError
from hotprefix.kv.node import Node
from hotprefix.kv.tree import BlockTree


class Lease:
    """Holds a path of nodes from the start. Releasing twice is an error.

    Open leases are counted by the `LeaseBook` that issued them: a leak shows at shutdown.
    """

    __slots__ = ("_book", "nodes", "open")

    def __init__(self, book: LeaseBook, nodes: Sequence[Node]) -> None:
        self._book = book
        self.nodes: list[Node] = list(nodes)
        self.open = True

    @property
    def last(self) -> Node | None:
        """The deepest node held."""
        return self.nodes[-1] if self.nodes else None

    def extend(self, node: Node) -> None:
        """Hold one more node: a child of the last one, or the first in another tree."""
        if not self.open:
            raise LogicError("the lease is released")
        above = node.parent
        last = self.last
        begins = last is None or node.top is not last.top
        follows = above is not None and (above.is_root if begins else above is last)
        if not follows:
            raise LogicError("a lease grows by children of its last node")
        self._book.tree.hold((node,))
        self.nodes.append(node)

    def shorten(self, count: int) -> list[Node]:
        """Give all nodes but the first `count` back; returns those."""
        if not self.open:
            raise LogicError("the lease is released")
        left = self.nodes[count:]
        del self.nodes[count:]
        self._book.tree.drop(reversed(left))
        return left

    def release(self) -> None:
        """Give all nodes back."""
        if not self.open:
            raise LogicError("the lease was released before")
        self.open = False
        self._book.closed(self)


class LeaseBook:
    """Issues leases on a tree and knows which are open."""

    def __init__(self, tree: BlockTree) -> None:
        self.tree = tree
        self._open: set[Lease] = set()

    def __len__(self) -> int:
        """Open leases."""
        return len(self._open)

    @property
    def open(self) -> frozenset[Lease]:
        """The open leases, for checkers."""
        return frozenset(self._open)

    def issue(self, nodes: Sequence[Node]) -> Lease:
        """A lease on a path of nodes that starts below a root."""
        self.tree.hold(nodes)
        lease = Lease(self, nodes)
        self._open.add(lease)
        return lease

    def closed(self, lease: Lease) -> None:
        """Called by the lease."""
        self._open.remove(lease)
        # Children before parents: a node becomes a candidate only after its last child went.
        self.tree.drop(reversed(lease.nodes))
