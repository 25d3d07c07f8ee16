"""The checker itself: it passes what is right and names the invariant that is broken."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId
from hotprefix.kv import invariants
from hotprefix.kv.lease import LeaseBook
from hotprefix.kv.node import Node
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.pool import BlockPool
from hotprefix.kv.tree import BlockTree
from tests.kv.trees import BLOCK, encoded, history


class Books:
    """A sound little world: a leased path a–b, a free branch a–c, a tail a–d, one private block."""

    def __init__(self) -> None:
        self.pool = BlockPool(8)
        self.tree = BlockTree(BLOCK, POLICIES["lru"](8))
        self.a = self.insert(None, "aaaa")
        self.b = self.insert(self.a, "aaaabbbb")
        self.c = self.insert(self.a, "aaaacccc")
        self.tail = self.insert(self.a, "aaaadd")
        self.book = LeaseBook(self.tree)
        self.lease = self.book.issue([self.a, self.b])
        self.private = self.pool.allocate(1) or []

    def insert(self, parent: Node | None, text: str) -> Node:
        (block,) = self.pool.allocate(1) or []
        self.pool.seal(block)
        tokens = history(text)
        start = (len(text) - 1) // BLOCK * BLOCK
        key = tokens.key_at(len(text))
        return self.tree.insert(tokens.root, parent, key, encoded(text[start:]), block)

    def check(self) -> None:
        invariants.check(self.tree, self.pool, self.book, self.private)


def test_sound_books_pass() -> None:
    books = Books()
    books.check()
    books.lease.release()
    books.check()
    invariants.check(BlockTree(BLOCK, POLICIES["lru"](1)), BlockPool(1), LeaseBook(books.tree), [])


def lost_block(books: Books) -> None:
    books.pool.allocate(1)


def miscounted_states(books: Books) -> None:
    books.pool._counts[1] += 1


def miscounted_nodes(books: Books) -> None:
    books.tree._size += 1
    books.tree._held += 1  # so that the count of what can go stays right


def block_in_two_places(books: Books) -> None:
    books.pool._free[0] = books.c.block


def private_block_in_the_tree(books: Books) -> None:
    books.private[0], books.c.block = books.c.block, books.private[0]


def sealed_block_marked_free(books: Books) -> None:
    index = books.pool._free[0]
    books.pool._state[index], books.pool._state[books.c.block] = 2, 0


def forgotten_drop(books: Books) -> None:
    books.a.holders += 1


def forgotten_hold(books: Books) -> None:
    books.b.holders -= 1


def leased_node_that_is_gone(books: Books) -> None:
    del books.a.children[books.b.key]
    books.tree._size -= 1
    books.tree._held -= 1
    books.pool.evict(books.b.block)


def tail_with_a_child(books: Books) -> None:
    child = books.insert(books.c, "aaaacccceeee")
    del books.c.children[child.key]
    books.tree.policy.add(books.c)
    books.tree.policy.discard(books.tail)
    child.parent = books.tail
    child.key = bytes(history("aaaaddeeee").key_at(10))  # type: ignore[assignment]
    child.key = _key_below(books.tail, child.tokens)
    books.tail.children[child.key] = child


def _key_below(node: Node, tokens: bytes) -> bytes:
    from hotprefix.keys.chain import child_key

    return child_key(node.key, tokens)


def overlong_block(books: Books) -> None:
    books.c.tokens = encoded("ccccc")
    books.c.key = _key_below(books.a, books.c.tokens)  # type: ignore[assignment]


def empty_block(books: Books) -> None:
    books.tail.tokens = b""
    books.tail.key = _key_below(books.a, b"")  # type: ignore[assignment]


def child_of_another(books: Books) -> None:
    books.c.parent = books.b


def orphan(books: Books) -> None:
    books.c.parent = None


def held_below_the_unheld(books: Books) -> None:
    lease = books.book.issue([books.c])  # not from the root on
    books.lease.release()
    assert lease.open


def held_candidate(books: Books) -> None:
    books.tree.policy.add(books.b)


def forgotten_candidate(books: Books) -> None:
    books.tree.policy.discard(books.c)


def empty_root(books: Books) -> None:
    key = history("").root[::-1]
    books.tree._roots[key] = Node(key, None, b"", BlockId(-1))  # type: ignore[index, arg-type]


def overstated_evictable(books: Books) -> None:
    books.tree._held -= 1


def changed_tokens(books: Books) -> None:
    books.c.tokens = encoded("cccx")


def foreign_key(books: Books) -> None:
    books.c.key = history("xxxxcccc").key_at(8)


CORRUPTIONS: list[tuple[str, Callable[[Books], None]]] = [
    ("I1", lost_block),
    ("I1", miscounted_states),
    ("I1", miscounted_nodes),
    ("I2", block_in_two_places),
    ("I2", private_block_in_the_tree),
    ("I2", sealed_block_marked_free),
    ("I3", forgotten_drop),
    ("I3", forgotten_hold),
    ("I3", leased_node_that_is_gone),
    ("I4", tail_with_a_child),
    ("I4", overlong_block),
    ("I4", empty_block),
    ("I5", child_of_another),
    ("I5", orphan),
    ("I5", held_below_the_unheld),
    ("I5", held_candidate),
    ("I5", forgotten_candidate),
    ("I6", overstated_evictable),
    ("I8", changed_tokens),
    ("I8", foreign_key),
    ("I12", empty_root),
]


@pytest.mark.parametrize(
    ("number", "corrupt"), CORRUPTIONS, ids=lambda value: getattr(value, "__name__", value)
)
def test_each_corruption_is_named(number: str, corrupt: Callable[[Books], None]) -> None:
    books = Books()
    books.check()
    corrupt(books)
    with pytest.raises(LogicError, match=f"^{number}:"):
        books.check()
