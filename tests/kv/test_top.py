"""Which prefixes are said to be worth most, and that looking for them has an end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hotprefix.kv.top import TopLimits, TopPath, top_paths
from tests.kv.trees import OTHER_ROOT, ROOT, Grove, encoded


def text_of(path: TopPath) -> str:
    return (path.head + path.tail).decode("utf-32-le")


def shown(grove: Grove, paths: int = 20) -> list[tuple[str, int, int]]:
    found = top_paths(grove.tree, TopLimits(paths=paths)).paths
    return [(text_of(path), path.hits, path.reused) for path in found]


def test_a_path_ends_where_its_reuse_thins_out() -> None:
    grove = Grove()
    system = grove.add("aaaabbbb")
    talk = grove.add("aaaabbbbccccdd")
    grove.add("aaaabbbbeeee")
    for _ in range(3):
        grove.use(system)
    grove.use(talk)
    # The system prompt was used 4 times; what is behind it once, so 2 blocks of 4 and 6 tokens more.
    assert shown(grove)[:2] == [("aaaabbbb", 4, 32), ("aaaabbbbccccdd", 1, 6)]
    best = top_paths(grove.tree, TopLimits()).paths[0]
    assert (best.tokens, best.branches, best.is_held, best.is_joint) == (8, 2, False, False)
    assert best.owner == ROOT


def test_what_was_never_reused_comes_last() -> None:
    grove = Grove()
    grove.add("xxxxyyyy")
    grove.use(grove.add("aaaa"))
    assert shown(grove) == [("aaaa", 1, 4), ("xxxxyyyy", 0, 0)]
    assert shown(grove, paths=1) == [("aaaa", 1, 4)]


def test_tenants_see_their_own() -> None:
    grove = Grove()
    grove.use(grove.add("aaaa"))
    grove.use(grove.add("bbbb", OTHER_ROOT))
    found = top_paths(grove.tree, TopLimits(), {OTHER_ROOT}).paths
    assert [text_of(path) for path in found] == ["bbbb"]
    assert found[0].owner == OTHER_ROOT
    assert top_paths(grove.tree, TopLimits(), set()).paths == ()


def test_a_held_path_says_so() -> None:
    grove = Grove()
    node = grove.add("aaaa")
    grove.tree.hold(node.path())
    assert top_paths(grove.tree, TopLimits()).paths[0].is_held


def test_long_paths_are_shown_by_their_ends() -> None:
    grove = Grove()
    grove.use(grove.add("aaaabbbbccccddddeeee"))
    path = top_paths(grove.tree, TopLimits(head=2, tail=1)).paths[0]
    assert path.tokens == 20
    assert (path.head, path.tail) == (encoded("aaaabbbb"), encoded("eeee"))


def test_the_search_is_bounded_however_wide_the_tree_is() -> None:
    grove = Grove()
    for number in range(200):
        grove.add(f"{number:04}")
    hot = grove.add("hot!")
    grove.use(hot)
    found = top_paths(grove.tree, TopLimits(paths=3, visits=50))
    assert found.visited <= 50
    assert not found.is_complete
    assert text_of(found.paths[0]) == "hot!"  # the youngest are looked at
    assert top_paths(grove.tree, TopLimits(visits=1000)).is_complete


@given(st.lists(st.text("ab", min_size=4, max_size=16), min_size=1, max_size=12))
def test_nothing_is_counted_twice(texts: list[str]) -> None:
    grove = Grove()
    for text in texts:
        grove.use(grove.add(text))
    nodes = list(grove.tree.nodes_of(ROOT))
    saved = sum(node.hits * len(node.tokens) // 4 for node in nodes)
    found = top_paths(grove.tree, TopLimits(paths=1000))
    assert found.is_complete
    assert sum(path.reused for path in found.paths) == saved
