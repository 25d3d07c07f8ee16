"""Leases: a path that stays until it is given back, once."""

from __future__ import annotations

import pytest

from hotprefix.base.errors import LogicError
from hotprefix.kv.lease import LeaseBook
from tests.kv.trees import Grove


def test_a_lease_holds_its_path_until_it_is_released() -> None:
    grove = Grove()
    node = grove.add("aaaabbbb")
    book = LeaseBook(grove.tree)
    lease = book.issue(node.path())
    assert lease.last is node
    assert grove.tree.evict(1) is None
    lease.release()
    assert grove.tree.evict(2) == [1, 0]


def test_a_path_is_free_when_its_last_lease_is() -> None:
    grove = Grove()
    book = LeaseBook(grove.tree)
    short = book.issue(grove.add("aaaa").path())
    long = book.issue(grove.add("aaaabbbb").path())
    assert grove.add("aaaa").holders == 2
    long.release()
    assert grove.tree.evictable == 1
    short.release()
    assert grove.tree.evictable == 2


def test_releasing_twice_is_an_error() -> None:
    grove = Grove()
    node = grove.add("aaaa")
    book = LeaseBook(grove.tree)
    other = book.issue([node])
    lease = book.issue([node])
    lease.release()
    with pytest.raises(LogicError, match="released before"):
        lease.release()
    assert node.holders == 1
    other.release()


def test_an_empty_lease_grows_from_a_root() -> None:
    grove = Grove()
    first, second = grove.add("aaaa"), grove.add("aaaabbbb")
    lease = LeaseBook(grove.tree).issue(())
    assert lease.last is None
    with pytest.raises(LogicError, match="children of its last node"):
        lease.extend(second)
    lease.extend(first)
    lease.extend(second)
    assert lease.nodes == [first, second]
    assert [first.holders, second.holders] == [1, 1]


@pytest.mark.parametrize("text", ["aaaa", "bbbb", "aaaaccccdddd"])
def test_extending_by_anything_but_a_child_is_an_error(text: str) -> None:
    grove = Grove()
    node = grove.add(text)
    lease = LeaseBook(grove.tree).issue(grove.add("aaaa").path())
    holders = node.holders
    with pytest.raises(LogicError, match="children of its last node"):
        lease.extend(node)
    assert node.holders == holders


def test_a_released_lease_can_not_grow() -> None:
    grove = Grove()
    lease = LeaseBook(grove.tree).issue(grove.add("aaaa").path())
    child = grove.add("aaaabbbb")
    lease.release()
    with pytest.raises(LogicError, match="released"):
        lease.extend(child)
    assert child.holders == 0


def test_the_book_counts_what_is_open() -> None:
    grove = Grove()
    book = LeaseBook(grove.tree)
    leases = [book.issue(grove.add("aaaa").path()) for _ in range(3)]
    assert len(book) == 3
    assert book.open == frozenset(leases)
    for lease in leases[:2]:
        lease.release()
    assert len(book) == 1
    assert book.open == {leases[2]}
