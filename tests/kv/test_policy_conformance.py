"""What every eviction policy owes the tree, whatever its ranking."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.base.errors import LogicError
from hotprefix.kv import invariants
from hotprefix.kv.lease import Lease, LeaseBook
from hotprefix.kv.node import Node
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.pool import BlockPool
from hotprefix.kv.tree import BlockTree
from tests.kv.trees import BLOCK, Grove, history

NAMES = sorted(POLICIES)
TEXTS = st.text(alphabet="ab", min_size=1, max_size=13)


def all_nodes(tree: BlockTree) -> list[Node]:
    nodes: list[Node] = []
    stack = list(tree.roots)
    while stack:
        children = list(stack.pop().children.values())
        nodes += children
        stack += children
    return nodes


@pytest.mark.parametrize("name", NAMES)
def test_names_agree(name: str) -> None:
    assert POLICIES[name](10).name == name


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_policy_gives_nothing(name: str) -> None:
    policy = POLICIES[name](10)
    assert len(policy) == 0
    with pytest.raises(LogicError, match="no candidate"):
        policy.pop()


@pytest.mark.parametrize("name", NAMES)
def test_adding_twice_counts_once_and_discarding_is_forgiving(name: str) -> None:
    policy = POLICIES[name](10)
    nodes = [Node(node.key, node.parent, node.tokens, node.block) for node in all_nodes_of_three()]
    for node in nodes:
        policy.inserted(node)
        policy.add(node)
        policy.add(node)
    assert len(policy) == 3
    policy.discard(nodes[0])
    policy.discard(nodes[0])
    assert len(policy) == 2
    assert {policy.pop(), policy.pop()} == set(nodes[1:])
    assert len(policy) == 0


def all_nodes_of_three() -> list[Node]:
    grove = Grove()
    for text in ("aaaa", "bbbb", "cccc"):
        grove.add(text)
    return all_nodes(grove.tree)


@pytest.mark.parametrize("name", NAMES)
def test_touching_a_held_node_does_not_make_it_a_candidate(name: str) -> None:
    grove = Grove(POLICIES[name](10))
    node = grove.add("aaaabbbb")
    grove.tree.hold(node.path())
    grove.tree.touch(node.path())
    assert len(grove.tree.policy) == 0
    grove.tree.drop(reversed(node.path()))
    assert len(grove.tree.policy) == 1


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_it_ranks_exactly_the_candidates(name: str, data: st.DataObject) -> None:
    """After any history the policy's set is that of the unheld leaves, and only those are given up."""
    capacity = data.draw(st.integers(1, 12))
    pool, tree = BlockPool(64), BlockTree(BLOCK, POLICIES[name](capacity))
    book, leases = LeaseBook(tree), list[Lease]()
    for _ in range(data.draw(st.integers(1, 25))):
        verb = data.draw(
            st.sampled_from(["insert", "insert", "lease", "release", "touch", "evict", "remove"])
        )
        nodes = all_nodes(tree)
        if verb == "insert" and pool.free >= 4:
            insert(tree, pool, data.draw(TEXTS))
        elif verb == "lease" and nodes:
            leases.append(book.issue(data.draw(st.sampled_from(nodes)).path()))
        elif verb == "release" and leases:
            leases.pop(data.draw(st.integers(0, len(leases) - 1))).release()
        elif verb == "touch" and nodes:
            tree.touch(data.draw(st.sampled_from(nodes)).path())
        elif verb == "evict":
            evict(tree, pool, data.draw(st.integers(0, 3)))
        elif verb == "remove" and (leaves := [node for node in nodes if node.is_candidate]):
            pool.evict(tree.remove(data.draw(st.sampled_from(leaves))))
        invariants.check(tree, pool, book, [])
    for lease in leases:
        lease.release()
    evict(tree, pool, len(tree))
    assert (len(tree), len(tree.policy), pool.free) == (0, 0, 64)


def insert(tree: BlockTree, pool: BlockPool, text: str) -> None:
    tokens = history(text)
    parent: Node | None = None
    for index in range(-(-len(text) // BLOCK)):
        key = tokens.key_at(min(len(text), (index + 1) * BLOCK))
        child = tree.child(parent, tokens.root, key)
        if child is None:
            (block,) = pool.allocate(1) or []
            child = tree.insert(tokens.root, parent, key, tokens.block_bytes(index), block)
            pool.seal(block)
        parent = child


def evict(tree: BlockTree, pool: BlockPool, count: int) -> None:
    held = {node.block for node in all_nodes(tree) if node.holders}
    possible, size = tree.evictable, len(tree)
    victims = tree.evict(count)
    if count > possible:
        assert victims is None
        assert len(tree) == size
        return
    assert victims is not None
    assert len(set(victims)) == count == size - len(tree)
    assert not held & set(victims)
    for block in victims:
        pool.evict(block)
