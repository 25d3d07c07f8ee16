"""The prefix tree: what is found, what may be inserted, what goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId
from hotprefix.kv.node import Node
from hotprefix.kv.tree import PARTIAL_FANOUT, BlockTree, Match
from tests.kv.trees import BLOCK, OTHER_ROOT, ROOT, Grove, encoded, history, letters


def match(tree: BlockTree, text: str, root: bytes = ROOT) -> Match:
    tokens = history(text, root)
    full = len(text) // BLOCK
    return tree.match(tokens.root, tokens.keys(full), tokens.encoded(full * BLOCK, len(text)))


def found(match_: Match) -> list[str]:
    return [letters(node) for node in match_.nodes]


def test_match_walks_as_far_as_the_keys_agree() -> None:
    grove = Grove()
    grove.add("aaaabbbbcccc")
    assert found(match(grove.tree, "aaaabbbbcccc")) == ["aaaa", "bbbb", "cccc"]
    assert found(match(grove.tree, "aaaabbbbdddd")) == ["aaaa", "bbbb"]
    assert found(match(grove.tree, "aaaa")) == ["aaaa"]
    assert found(match(grove.tree, "bbbbcccc")) == []


def test_match_changes_nothing() -> None:
    grove = Grove()
    node = grove.add("aaaabbbb")
    before = [(n.holders, n.touched, n.hits) for n in node.path()]
    match(grove.tree, "aaaabbbbcc")
    assert [(n.holders, n.touched, n.hits) for n in node.path()] == before
    assert len(list(grove.tree.roots)) == 1


def test_scopes_do_not_see_each_other() -> None:
    grove = Grove()
    grove.add("aaaabbbb")
    assert found(match(grove.tree, "aaaabbbb", OTHER_ROOT)) == []
    grove.add("aaaa", OTHER_ROOT)
    assert found(match(grove.tree, "aaaabbbb", OTHER_ROOT)) == ["aaaa"]


def test_a_tail_is_found_by_its_leading_tokens() -> None:
    grove = Grove()
    grove.add("aaaabc")
    result = match(grove.tree, "aaaabcd")
    assert result.partial is not None and letters(result.partial) == "bc"
    assert result.partial_tokens == 2
    assert match(grove.tree, "aaaabx").partial_tokens == 1
    assert match(grove.tree, "aaaaxx").partial is None


def test_the_child_that_shares_most_is_chosen() -> None:
    grove = Grove()
    for text in ("aaaabx", "aaaabcdx", "aaaabcx", "aaaay"):
        grove.add(text)
    node, shared = grove.tree.partial(grove.add("aaaa"), encoded("bcdz"))
    assert node is not None
    assert (letters(node), shared) == ("bcdx", 3)


def test_nothing_is_partly_found_below_nothing() -> None:
    assert Grove().tree.partial(None, encoded("a")) == (None, 0)


def test_only_the_youngest_children_are_looked_at() -> None:
    """A node with a million children must not cost a million comparisons."""
    grove = Grove()
    tree = grove.tree
    for number in range(PARTIAL_FANOUT + 1):
        grove.add("aaaa" + chr(1000 + number) + "xyz")
    parent = grove.add("aaaa")
    youngest, second_oldest, oldest = PARTIAL_FANOUT, 1, 0
    assert tree.partial(parent, encoded(chr(1000 + youngest)))[1] == 1
    assert tree.partial(parent, encoded(chr(1000 + second_oldest)))[1] == 1
    assert tree.partial(parent, encoded(chr(1000 + oldest))) == (None, 0)
    # By key it is found all the same.
    assert len(match(tree, "aaaa" + chr(1000 + oldest) + "xyz").nodes) == 2


def test_inserting_twice_is_an_error() -> None:
    grove = Grove()
    node = grove.add("aaaabbbb")
    for at in node.path():
        parent = at.parent if at.parent is not None and not at.parent.is_root else None
        with pytest.raises(LogicError, match="already"):
            grove.tree.insert(history("").root, parent, at.key, at.tokens, BlockId(9))
    assert len(grove.tree) == 2


def test_tails_have_no_children() -> None:
    grove = Grove()
    tail = grove.add("aaaabb")
    key = history("aaaabbcc").key_at(8)
    with pytest.raises(LogicError, match="tail"):
        grove.tree.insert(history("").root, tail, key, encoded("cccc"), BlockId(9))
    assert len(grove.tree) == 2
    assert len(grove.tree.policy) == 1


def test_subsumed_are_the_unheld_tails_that_the_block_begins_with() -> None:
    grove = Grove()
    for text in ("aaaab", "aaaabc", "aaaabcd", "aaaax", "aaaabcy", "aaaabcde"):
        grove.add(text)
    held = grove.add("aaaabc")
    grove.tree.hold(held.path())
    assert sorted(map(letters, grove.tree.subsumed(grove.add("aaaabcde")))) == ["b", "bcd"]
    assert sorted(map(letters, grove.tree.subsumed(grove.add("aaaabcd")))) == ["b"]
    assert grove.tree.subsumed(grove.add("aaaax")) == []


def test_a_lone_block_subsumes_nothing() -> None:
    grove = Grove()
    assert grove.tree.subsumed(grove.add("aaaa")) == []


def test_evict_takes_exactly_as_many_or_none() -> None:
    grove = Grove()
    grove.add("aaaabbbbcccc")
    held = grove.add("aaaadddd")
    grove.tree.hold(held.path())
    assert grove.tree.evictable == 2
    assert grove.tree.evict(3) is None
    assert (len(grove.tree), grove.tree.evictable) == (4, 2)
    assert grove.tree.evict(0) == []
    assert grove.tree.evict(2) == [2, 1]
    assert (len(grove.tree), grove.tree.evictable) == (2, 0)
    assert grove.tree.evict(1) is None


def test_a_root_vanishes_with_its_last_block() -> None:
    grove = Grove()
    grove.add("aaaabbbb")
    grove.add("aaaa", OTHER_ROOT)
    assert len(list(grove.tree.roots)) == 2
    grove.tree.evict(3)
    assert list(grove.tree.roots) == []
    assert grove.tree.root_of(history("").root) is None
    # And it comes back.
    grove.add("aaaa")
    assert found(match(grove.tree, "aaaa")) == ["aaaa"]


def test_a_held_node_can_neither_be_evicted_nor_removed() -> None:
    grove = Grove()
    node = grove.add("aaaa")
    grove.tree.hold([node])
    grove.tree.hold([node])
    grove.tree.drop([node])
    assert grove.tree.evict(1) is None
    with pytest.raises(LogicError, match="can't be removed"):
        grove.tree.remove(node)
    grove.tree.drop([node])
    assert grove.tree.remove(node) == 0


def test_an_inner_node_can_not_be_removed() -> None:
    grove = Grove()
    inner = grove.add("aaaa")
    grove.add("aaaabbbb")
    with pytest.raises(LogicError, match="can't be removed"):
        grove.tree.remove(inner)


def test_dropping_what_nobody_holds_is_an_error() -> None:
    grove = Grove()
    node = grove.add("aaaa")
    with pytest.raises(LogicError, match="held by nobody"):
        grove.tree.drop([node])


def test_a_policy_that_gives_up_a_held_node_is_caught() -> None:
    grove = Grove()
    node = grove.add("aaaa")
    grove.add("cccc")
    grove.tree.hold([node])
    grove.tree.policy.add(node)
    with pytest.raises(LogicError, match="no candidate"):
        grove.tree.evict(1)


def test_path_and_root() -> None:
    grove = Grove()
    node = grove.add("aaaabbbbcc")
    assert list(map(letters, node.path())) == ["aaaa", "bbbb", "cc"]
    root = grove.tree.root_of(history("").root)
    assert root is not None and root.is_root and root.path() == []


@given(st.lists(st.text(alphabet="ab", min_size=1, max_size=14), min_size=1, max_size=12))
def test_everything_inserted_is_found_until_it_is_evicted(texts: list[str]) -> None:
    grove = Grove()
    for text in texts:
        grove.add(text)
    for text in texts:
        result = match(grove.tree, text)
        full, rest = divmod(len(text), BLOCK)
        assert "".join(found(result)) == text[: full * BLOCK]
        assert result.partial_tokens == rest
    for left in range(len(grove.tree) - 1, -1, -1):
        victim = grove.tree.evict(1)
        assert victim is not None
        blocks = [node.block for node in _nodes(grove.tree)]
        assert len(blocks) == len(grove.tree) == left
        assert victim[0] not in blocks
    assert grove.tree.evict(1) is None


def _nodes(tree: BlockTree) -> list[Node]:
    nodes: list[Node] = []
    stack = list(tree.roots)
    while stack:
        children = list(stack.pop().children.values())
        nodes += children
        stack += children
    return nodes
