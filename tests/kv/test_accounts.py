"""Shares of the tree: counting, floors, ceilings, and who pays when room is needed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.base.errors import LogicError
from hotprefix.kv import invariants
from hotprefix.kv.accounts import UNLIMITED, Accounts, Limits, Outcome, protected_blocks
from hotprefix.kv.lease import Lease, LeaseBook
from hotprefix.kv.node import Node
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.policy.quota import QuotaPolicy
from hotprefix.kv.pool import BlockPool
from hotprefix.kv.tree import BlockTree
from tests.kv.trees import BLOCK, OTHER_ROOT, ROOT, history


class Quarter:
    """A tree with quotas; block numbers are those of a pool."""

    def __init__(self, reserve: int = 10, policy: str = "lru", size: int = 64) -> None:
        self.accounts = Accounts(reserve)
        self.policy = QuotaPolicy(lambda: POLICIES[policy](size), self.accounts)
        self.tree = BlockTree(BLOCK, self.policy, self.accounts)
        self.pool = BlockPool(size)
        self.book = LeaseBook(self.tree)

    def add(self, text: str, root: bytes = ROOT) -> Node:
        tokens = history(text, root)
        node: Node | None = None
        for index in range(-(-len(text) // BLOCK)):
            key = tokens.key_at(min(len(text), (index + 1) * BLOCK))
            child = self.tree.child(node, tokens.root, key)
            if child is None:
                (block,) = self.pool.allocate(1) or []
                child = self.tree.insert(tokens.root, node, key, tokens.block_bytes(index), block)
                self.pool.seal(block)
            node = child
        assert node is not None
        return node

    def limit(self, root: bytes, limits: Limits) -> None:
        self.policy.limit(root, limits, list(self.tree.nodes_of(root)))  # type: ignore[arg-type]

    def evict(self, count: int, asker: bytes | None = None) -> list[int] | None:
        victims = self.tree.evict(count, asker)  # type: ignore[arg-type]
        for block in victims or []:
            self.pool.evict(block)
        return None if victims is None else list(victims)

    def count(self, root: bytes) -> int:
        account = self.accounts.find(root)  # type: ignore[arg-type]
        return account.cached if account is not None else 0

    def check(self) -> None:
        invariants.check(self.tree, self.pool, self.book, [])


@pytest.mark.parametrize(
    ("cached", "held", "floor", "protected"),
    [(5, 0, 3, 3), (2, 0, 3, 2), (5, 2, 3, 1), (5, 4, 3, 0), (5, 5, 9, 0), (0, 0, 3, 0), (5, 0, 0, 0)],
)
def test_held_blocks_count_toward_the_floor(cached: int, held: int, floor: int, protected: int) -> None:
    assert protected_blocks(cached, held, floor) == protected


def test_strangers_leave_the_floor_alone_and_its_owner_does_not() -> None:
    quarter = Quarter()
    quarter.add("aaaabbbbccccdddd")
    quarter.limit(ROOT, Limits(floor=3))
    quarter.add("xxxxyyyy", OTHER_ROOT)
    assert quarter.tree.evictable == 6
    assert quarter.tree.evictable_by(OTHER_ROOT) == 3
    assert quarter.tree.evictable_by(ROOT) == 6
    assert quarter.evict(4, OTHER_ROOT) is None
    assert len(quarter.evict(3, OTHER_ROOT) or []) == 3
    assert (quarter.count(ROOT), quarter.count(OTHER_ROOT)) == (3, 0)
    assert quarter.evict(1, OTHER_ROOT) is None
    assert len(quarter.evict(3, ROOT) or []) == 3
    quarter.check()


def test_above_the_floor_age_decides() -> None:
    quarter = Quarter()
    old = quarter.add("aaaabbbb")
    quarter.limit(ROOT, Limits(floor=1))
    other = quarter.add("xxxx", OTHER_ROOT)
    assert quarter.evict(1) == [old.block]
    assert quarter.evict(1) == [other.block]
    assert quarter.evict(1) is None
    assert quarter.count(ROOT) == 1


def test_whoever_is_above_the_ceiling_pays_first_the_most_first() -> None:
    quarter = Quarter()
    third = history("", bytes(32)).root
    quarter.add("xxxx", OTHER_ROOT)  # the oldest of all
    quarter.add("aaaabbbbcccc")
    quarter.add("aaaabbbbccccdddd", third)
    quarter.limit(ROOT, Limits(ceiling=1))
    quarter.limit(third, Limits(ceiling=1))
    assert quarter.evict(1) is not None
    assert (quarter.count(ROOT), quarter.count(third)) == (3, 3)
    quarter.evict(4)
    assert (quarter.count(ROOT), quarter.count(third), quarter.count(OTHER_ROOT)) == (1, 1, 1)
    quarter.evict(1)
    assert quarter.count(OTHER_ROOT) == 0
    assert quarter.accounts.outcomes == {
        Outcome.CEILING: 5, Outcome.CAPACITY: 1, Outcome.REPLACED: 0, Outcome.REJECTED: 0,
    }  # fmt: skip


def test_a_held_surplus_can_not_pay() -> None:
    quarter = Quarter()
    node = quarter.add("aaaabbbb")
    quarter.limit(ROOT, Limits(ceiling=0))
    lease = quarter.book.issue(node.path())
    quarter.add("xxxx", OTHER_ROOT)
    assert len(quarter.evict(1) or []) == 1
    assert quarter.evict(1) is None
    lease.release()
    assert len(quarter.evict(2) or []) == 2
    quarter.check()


def test_floors_do_not_exceed_the_reserve() -> None:
    quarter = Quarter(reserve=5)
    quarter.limit(ROOT, Limits(floor=3))
    with pytest.raises(ValueError, match="6 blocks, and 5 are reserved"):
        quarter.limit(OTHER_ROOT, Limits(floor=3))
    quarter.limit(ROOT, Limits(floor=2))
    quarter.limit(OTHER_ROOT, Limits(floor=3))
    assert quarter.accounts.floors == 5
    quarter.check()


def test_nonsense_limits() -> None:
    for floor, ceiling in ((-1, None), (3, 2)):
        with pytest.raises(ValueError, match="floor"):
            Limits(floor, ceiling)


def test_accounts_without_blocks_or_limits_are_forgotten() -> None:
    quarter = Quarter()
    for number in range(50):
        quarter.add("aaaa", number.to_bytes(32))
    assert len(quarter.accounts) == 50
    quarter.evict(50)
    assert len(quarter.accounts) == 0
    quarter.limit(ROOT, Limits(floor=1))
    assert len(quarter.accounts) == 1
    quarter.limit(ROOT, UNLIMITED)
    assert len(quarter.accounts) == 0


def test_lifted_limits_bring_the_blocks_back_to_the_others() -> None:
    quarter = Quarter()
    first = quarter.add("aaaa")
    quarter.limit(ROOT, Limits(floor=5))
    second = quarter.add("bbbb")
    assert quarter.evict(1) is None
    quarter.limit(ROOT, UNLIMITED)
    assert quarter.evict(2) == [first.block, second.block]


def test_a_tree_of_another_scope_can_be_counted_for_the_same_tenant() -> None:
    quarter = Quarter()
    quarter.limit(ROOT, Limits(floor=2))
    public = quarter.add("aaaa", OTHER_ROOT)
    joint = history("", bytes(32)).root
    tokens = history("bbbb", joint)
    (block,) = quarter.pool.allocate(1) or []
    node = quarter.tree.insert(joint, public, tokens.key_at(4), tokens.block_bytes(0), block, ROOT)  # type: ignore[arg-type]
    quarter.pool.seal(block)
    assert quarter.count(ROOT) == 1
    assert quarter.tree.above(public, joint) is node.parent
    assert not public.children
    lease = quarter.book.issue([public])
    lease.extend(node)
    quarter.check()
    lease.release()
    assert quarter.evict(2) is None, "the floor covers it"
    assert quarter.evict(1) == [public.block]
    quarter.check()


def test_a_node_of_nobody_is_a_mistake() -> None:
    stray = Node(history("aaaa").key_at(4), None, b"", BlockPool(1).free_ids()[0])
    with pytest.raises(LogicError, match="nobody"):
        Quarter().tree.account_of(stray)


@pytest.mark.parametrize("number", ["I1", "I6", "I12"])
def test_wrong_books_are_found(number: str) -> None:
    quarter = Quarter()
    quarter.add("aaaabbbb")
    quarter.limit(ROOT, Limits(floor=1))
    quarter.check()
    if number == "I1":
        quarter.accounts.open(ROOT).cached += 1  # type: ignore[arg-type]
    elif number == "I6":
        quarter.accounts._protected += 1
    else:
        quarter.accounts.open(OTHER_ROOT)  # type: ignore[arg-type]
    with pytest.raises(LogicError, match=f"^{number}:"):
        quarter.check()


ROOTS = [bytes([number]) * 32 for number in range(3)]
LIMITS = st.builds(
    lambda floor, more: Limits(floor, None if more is None else floor + more),
    st.integers(0, 6),
    st.none() | st.integers(0, 6),
)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_evict_gives_exactly_what_was_promised_and_never_breaks_a_floor(
    policy: str, data: st.DataObject
) -> None:
    """Any history of verbs and of limits: `evictable_by` is true to the block."""
    quarter = Quarter(reserve=12, policy=policy)
    leases: list[Lease] = []
    for _ in range(data.draw(st.integers(1, 30))):
        verb = data.draw(st.sampled_from(["add", "add", "lease", "release", "touch", "evict", "limit"]))
        root = data.draw(st.sampled_from(ROOTS))
        nodes = list(quarter.tree.nodes_of(root))  # type: ignore[arg-type]
        if verb == "add" and quarter.pool.free >= 4:
            quarter.add(data.draw(st.text(alphabet="ab", min_size=1, max_size=13)), root)
        elif verb == "lease" and nodes:
            leases.append(quarter.book.issue(data.draw(st.sampled_from(nodes)).path()))
        elif verb == "release" and leases:
            leases.pop(data.draw(st.integers(0, len(leases) - 1))).release()
        elif verb == "touch" and nodes:
            quarter.tree.touch(data.draw(st.sampled_from(nodes)).path())
        elif verb == "limit":
            limits = data.draw(LIMITS)
            known = quarter.accounts.find(root)  # type: ignore[arg-type]
            before = known.limits.floor if known else 0
            if quarter.accounts.floors - before + limits.floor <= 12:
                quarter.limit(root, limits)
        elif verb == "evict":
            evict_all_that_may_go(quarter, root, data.draw(st.integers(0, 5)))
        quarter.check()


def evict_all_that_may_go(quarter: Quarter, asker: bytes, count: int) -> None:
    promised = quarter.tree.evictable_by(asker)  # type: ignore[arg-type]
    before = {root: quarter.count(root) for root in ROOTS}
    victims = quarter.evict(count, asker)
    assert (victims is None) == (count > promised)
    for root in ROOTS:
        account = quarter.accounts.find(root)  # type: ignore[arg-type]
        if root != asker and account is not None and quarter.count(root) < before[root]:
            assert quarter.count(root) >= account.limits.floor
    assert sum(before.values()) - sum(map(quarter.count, ROOTS)) == len(victims or [])
