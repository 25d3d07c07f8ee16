"""Shares of the cache: floors that survive a flood, ceilings by mode, and the public zone's blocks."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hotprefix.base.errors import LogicError
from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.rules import ReuseRules
from hotprefix.cache.shares import set_shares
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.scope import CacheScope
from hotprefix.keys.zones import PUBLIC_TENANT, PublicZone
from hotprefix.kv import invariants
from hotprefix.kv.accounts import Accounts, Limits, Outcome, QuotaMode
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.policy.adaptive import LEAST_LEARNED, AdaptivePolicy
from hotprefix.kv.policy.quota import QuotaPolicy
from hotprefix.kv.pool import BlockPool, BlockState
from hotprefix.kv.tree import BlockTree
from tests.cache.machine_parts import TrueArena

BLOCK = 4
ALICE, BOB, CAROL, PUBLIC = (
    CacheScope("model", "format", tenant=tenant).root() for tenant in ("a", "b", "c", PUBLIC_TENANT)
)
HOT = list(range(100, 124))
"""Six blocks."""


class TokenArena(TrueArena):
    """Bytes that depend on the tokens alone, as real ones do: equal prompts of two tenants are equal."""

    def write(self, holding: Holding, start: int, stop: int) -> None:
        for position in range(start, stop):
            block = holding.table[position // self.block_size]
            self.slots[block][position % self.block_size] = _digest(holding.history, position)

    def verify(self, holding: Holding) -> None:
        for position in range(holding.computed):
            block = holding.table[position // self.block_size]
            assert self.slots[block][position % self.block_size] == _digest(holding.history, position)


def _digest(history: TokenHistory, position: int) -> bytes:
    return sha256(history.encoded(0, position + 1)).digest()


class House:
    """A cache with quotas over a small arena."""

    def __init__(
        self,
        blocks: int = 16,
        reserve: int = 8,
        policy: str = "lru",
        prefixes: Sequence[Sequence[int]] = (),
        granularity: int = 1,
    ) -> None:
        self.pool = BlockPool(blocks)
        self.accounts = Accounts(reserve)
        quotas = QuotaPolicy(lambda: POLICIES[policy](blocks), self.accounts)
        tree = BlockTree(BLOCK, quotas.in_force, self.accounts)
        self.arena = TokenArena(blocks, BLOCK)
        rules = ReuseRules(BLOCK, granularity)
        self.cache = PrefixCache(self.pool, tree, rules, LogitsStore(0), self.arena, quotas)
        self.zone = PublicZone(PUBLIC, BLOCK, prefixes)

    def history(self, root: bytes, tokens: Sequence[int]) -> TokenHistory:
        return self.zone.history(root, tokens)  # type: ignore[arg-type]

    def open(self, root: bytes, tokens: Sequence[int]) -> Holding | None:
        history = self.history(root, tokens)
        plan = self.cache.plan(history)
        spare = self.cache.spare(plan)
        holding = self.cache.open(history, plan)
        assert (holding is None) == (spare < 0)
        return holding

    def compute(self, holding: Holding) -> None:
        total = len(holding.history)
        self.arena.verify(holding)
        self.arena.write(holding, holding.computed, total)
        holding.computed = holding.prefilled = total
        self.cache.commit(holding)
        self.arena.verify(holding)

    def serve(self, root: bytes, tokens: Sequence[int]) -> int:
        """One request from its start to its end; returns how many tokens were reused."""
        holding = self.open(root, tokens)
        assert holding is not None
        reused = holding.computed
        self.compute(holding)
        self.cache.close(holding)
        self.check()
        return reused

    def reusable(self, root: bytes, tokens: Sequence[int]) -> int:
        return self.cache.plan(self.history(root, tokens)).reused

    def cached(self, root: bytes) -> int:
        account = self.accounts.find(root)  # type: ignore[arg-type]
        return account.cached if account is not None else 0

    def check(self, holdings: Sequence[Holding] = ()) -> None:
        cache = self.cache
        invariants.check(cache.tree, cache.pool, cache.leases, cache.private_blocks(holdings))


def flood(house: House, root: bytes, count: int = 60) -> None:
    random = Random(3)
    for _ in range(count):
        house.serve(root, [random.randrange(50) for _ in range(random.randint(4, 32))])


class TestFloors:
    @pytest.mark.parametrize("policy", sorted(POLICIES))
    def test_a_hot_prefix_survives_anothers_flood(self, policy: str) -> None:
        house = House(policy=policy)
        house.cache.limit(BOB, Limits(floor=6))
        house.serve(BOB, HOT)
        flood(house, ALICE)
        assert house.reusable(BOB, HOT) == len(HOT) - 2
        assert house.accounts.outcomes[Outcome.CAPACITY] > 100

    @pytest.mark.parametrize("policy", sorted(POLICIES))
    def test_without_a_floor_it_does_not(self, policy: str) -> None:
        house = House(policy=policy)
        house.serve(BOB, HOT)
        flood(house, ALICE)
        assert house.reusable(BOB, HOT) == 0

    def test_running_requests_can_not_take_it_either(self) -> None:
        house = House()
        house.cache.limit(BOB, Limits(floor=6))
        house.serve(BOB, HOT)
        first = house.open(ALICE, range(32))
        assert first is not None
        assert house.open(ALICE, range(50, 62)) is None, "ten blocks are all that is left for others"
        assert house.cache.grow(first, 40)
        assert not house.cache.grow(first, 41)
        house.check([first])
        # Its owner may use its own blocks as it likes.
        own = house.open(BOB, range(200, 224))
        assert own is not None
        house.check([first, own])

    def test_what_one_sequence_is_promised_is_there_whatever_is_cached(self) -> None:
        house = House(blocks=16, reserve=6)
        house.cache.limit(BOB, Limits(floor=4))
        house.cache.limit(CAROL, Limits(floor=2))
        house.serve(BOB, HOT)
        house.serve(CAROL, HOT)
        assert house.cache.usable_blocks == 10
        assert house.serve(ALICE, range(40)) == 0
        assert (house.cached(BOB), house.cached(CAROL)) == (4, 2)

    def test_floors_beyond_the_reserve_are_refused(self) -> None:
        house = House(reserve=5)
        with pytest.raises(ValueError, match="5 are reserved"):
            house.cache.limit(BOB, Limits(floor=6))

    def test_a_cache_without_quotas_says_so(self) -> None:
        tree = BlockTree(BLOCK, POLICIES["lru"](4))
        cache = PrefixCache(BlockPool(4), tree, ReuseRules(BLOCK), LogitsStore(0), TokenArena(4, BLOCK))
        with pytest.raises(LogicError, match="no quotas"):
            cache.limit(BOB, Limits(1))


class TestCeilings:
    """Each mode has its own counter."""

    def test_borrow_keeps_more_while_there_is_room_and_pays_first(self) -> None:
        house = House()
        house.cache.limit(ALICE, Limits(ceiling=2))
        house.serve(BOB, HOT[:8])  # two blocks, and the oldest
        house.serve(ALICE, range(24))
        assert house.cached(ALICE) == 6
        house.serve(CAROL, range(50, 86))
        assert (house.cached(ALICE), house.cached(BOB)) == (5, 2)
        house.serve(CAROL, range(150, 162))
        assert (house.cached(ALICE), house.cached(BOB)) == (2, 2)
        outcomes = house.accounts.outcomes
        assert (outcomes[Outcome.CEILING], outcomes[Outcome.CAPACITY]) == (4, 0)

    def test_replace_drops_the_tenants_own_oldest(self) -> None:
        house = House()
        house.cache.limit(ALICE, Limits(ceiling=3, mode=QuotaMode.REPLACE))
        house.serve(ALICE, range(8))
        house.serve(BOB, HOT)
        house.serve(ALICE, range(50, 58))
        assert house.cached(ALICE) == 3
        assert house.reusable(ALICE, range(50, 60)) == 8
        assert house.reusable(ALICE, range(8)) == 4
        assert house.cached(BOB) == 6
        assert house.accounts.outcomes == {
            Outcome.REPLACED: 1, Outcome.CAPACITY: 0, Outcome.CEILING: 0, Outcome.REJECTED: 0,
        }  # fmt: skip
        assert house.cache.gauges().evicted == 1

    def test_what_replace_remembers_is_bounded(self) -> None:
        """However long nobody else needs the room."""
        house = House(policy="adaptive")
        house.cache.limit(ALICE, Limits(ceiling=4, mode=QuotaMode.REPLACE))
        flood(house, ALICE, 600)
        _, policy = house.cache.quotas._own[ALICE]  # type: ignore[union-attr, index]
        assert isinstance(policy, AdaptivePolicy)
        assert len(policy._gone) <= 4 * 16 + LEAST_LEARNED + 16

    def test_reject_keeps_what_was_there_first(self) -> None:
        house = House()
        house.cache.limit(ALICE, Limits(ceiling=3, mode=QuotaMode.REJECT))
        house.serve(ALICE, range(10))
        assert house.cached(ALICE) == 3
        assert house.serve(ALICE, range(50, 61)) == 0
        assert house.serve(ALICE, range(50, 61)) == 0
        assert house.reusable(ALICE, range(12)) == 10
        assert house.cached(ALICE) == 3
        assert house.accounts.outcomes[Outcome.REJECTED] == 6
        assert house.pool.count(BlockState.PRIVATE) == 0

    def test_reject_in_the_middle_of_a_prompt(self) -> None:
        house = House()
        house.cache.limit(ALICE, Limits(ceiling=2, mode=QuotaMode.REJECT))
        holding = house.open(ALICE, range(16))
        assert holding is not None
        house.compute(holding)
        assert (holding.sealed, house.cached(ALICE)) == (2, 2)
        house.check([holding])
        house.cache.share_tail(holding)
        assert house.cache.grow(holding, 17)
        house.cache.close(holding)
        house.check()
        assert house.reusable(ALICE, range(20)) == 8


class TestPublicZone:
    def test_others_read_the_public_blocks_and_nothing_else(self) -> None:
        house = House(prefixes=[HOT[:8]])
        assert house.serve(ALICE, HOT) == 0
        assert house.reusable(ALICE, HOT) == len(HOT) - 2
        assert house.reusable(BOB, HOT) == 8
        assert house.reusable(BOB, [*HOT[:8], 1, 2, 3]) == 8
        assert house.reusable(BOB, HOT[:7]) == 0
        assert (house.cached(PUBLIC), house.cached(ALICE)) == (2, 4)

    def test_the_private_rest_is_each_tenants_own(self) -> None:
        house = House(prefixes=[HOT[:8]])
        house.serve(ALICE, HOT)
        assert house.serve(BOB, HOT) == 8
        assert (house.cached(PUBLIC), house.cached(ALICE), house.cached(BOB)) == (2, 4, 4)
        assert house.reusable(BOB, HOT) == house.reusable(ALICE, HOT) == len(HOT) - 2

    def test_a_partial_block_of_another_tenant_is_not_copied(self) -> None:
        house = House(prefixes=[HOT[:8]])
        house.serve(ALICE, HOT[:11])
        assert house.reusable(ALICE, [*HOT[:10], 1, 1, 1]) == 10
        assert house.reusable(BOB, [*HOT[:10], 1, 1, 1]) == 8

    def test_a_prompt_that_is_just_the_public_prefix(self) -> None:
        house = House(prefixes=[HOT[:8]])
        assert house.serve(ALICE, HOT[:8]) == 0
        assert house.serve(BOB, HOT[:8]) == 6
        assert (house.cached(PUBLIC), house.cached(ALICE), house.cached(BOB)) == (2, 0, 0)

    def test_private_blocks_that_have_lost_their_public_part_are_found_again_later(self) -> None:
        house = House(blocks=10, reserve=4, prefixes=[HOT[:8]])
        house.cache.limit(ALICE, Limits(floor=4))
        house.serve(ALICE, HOT)
        house.serve(BOB, range(24))
        assert (house.cached(PUBLIC), house.cached(ALICE)) == (0, 4)
        assert house.reusable(ALICE, HOT) == 0
        assert house.serve(BOB, HOT[:8]) == 0
        assert house.reusable(ALICE, HOT) == len(HOT) - 2

    def test_the_zone_can_have_a_floor(self) -> None:
        house = House(prefixes=[HOT])
        house.cache.limit(PUBLIC, Limits(floor=6))
        house.serve(ALICE, HOT)
        flood(house, BOB)
        assert house.reusable(CAROL, HOT) == len(HOT) - 2

    def test_a_prefix_that_is_public_no_more(self) -> None:
        house = House(prefixes=[HOT[:8]])
        house.serve(ALICE, HOT)
        house.zone = PublicZone(PUBLIC, BLOCK)
        assert house.serve(ALICE, HOT) == house.serve(BOB, HOT) == 0
        house.check()


class TestChanges:
    """Shares of all tenants change at once, while blocks are cached."""

    def test_a_floor_goes_from_one_to_another_in_one_change(self) -> None:
        house = House(reserve=8)
        set_shares(house.cache, {ALICE: Limits(floor=8)})
        house.serve(BOB, HOT)
        set_shares(house.cache, {BOB: Limits(floor=6), PUBLIC: Limits(floor=2)})
        assert (house.accounts.floors, house.accounts.find(ALICE)) == (8, None)
        flood(house, CAROL)
        assert house.reusable(BOB, HOT) == len(HOT) - 2

    def test_a_share_that_is_taken_away_protects_nothing(self) -> None:
        house = House(reserve=8)
        set_shares(house.cache, {BOB: Limits(floor=6)})
        house.serve(BOB, HOT)
        set_shares(house.cache, {})
        flood(house, CAROL)
        assert house.cached(BOB) == 0

    @pytest.mark.parametrize("policy", sorted(POLICIES))
    def test_without_shares_there_is_no_policy_in_between(self, policy: str) -> None:
        house = House(policy=policy)
        plain = house.cache.tree.policy
        assert not isinstance(plain, QuotaPolicy)
        house.serve(ALICE, HOT)
        set_shares(house.cache, {ALICE: Limits(ceiling=3), BOB: Limits(ceiling=1)})
        assert house.cache.tree.policy is house.cache.quotas
        house.check()
        set_shares(house.cache, {BOB: Limits(ceiling=1)})
        house.check()
        set_shares(house.cache, {})
        assert house.cache.tree.policy is plain
        house.check()

    def test_floors_beyond_the_reserve_are_refused(self) -> None:
        house = House(reserve=8)
        with pytest.raises(ValueError, match="reserved"):
            set_shares(house.cache, {ALICE: Limits(floor=5), BOB: Limits(floor=4)})

    def test_what_was_not_kept_is_counted_with_and_without_shares(self) -> None:
        house = House()
        flood(house, CAROL)
        gauges = house.cache.gauges()
        assert gauges.not_kept[Outcome.CAPACITY] == gauges.evicted > 0
        set_shares(house.cache, {CAROL: Limits(ceiling=3, mode=QuotaMode.REPLACE)})
        flood(house, CAROL)
        gauges = house.cache.gauges()
        assert gauges.not_kept[Outcome.REPLACED] > 0
        kept_back = gauges.not_kept[Outcome.REJECTED]
        assert sum(gauges.not_kept.values()) - kept_back == gauges.evicted


TOKENS = st.lists(st.integers(0, 1), min_size=1, max_size=22)
LIMITS = st.builds(
    lambda floor, more, mode: Limits(floor, None if more is None else floor + more, mode),
    st.integers(0, 3),
    st.none() | st.integers(0, 4),
    st.sampled_from(QuotaMode),
)


class QuotaMachine(RuleBasedStateMachine):
    """Any order of verbs, tenants, limits and public prefixes; the books and the bytes are right."""

    granularity = 1

    @initialize(policy=st.sampled_from(sorted(POLICIES)), prefixes=st.lists(TOKENS, max_size=3))
    def build(self, policy: str, prefixes: list[list[int]]) -> None:
        self.house = House(14, 5, policy, prefixes, self.granularity)
        self.open: list[Holding] = []

    @rule(tokens=TOKENS, root=st.sampled_from([ALICE, BOB]))
    def start(self, tokens: list[int], root: bytes) -> None:
        history = self.house.history(root, tokens)
        visible = {PUBLIC, root} if history.shared_blocks else {root}
        plan = self.house.cache.plan(history)
        for node in (*plan.nodes, *([plan.source] if plan.source else [])):
            assert self.house.cache.tree.account_of(node).owner in visible
        before = self.house.cache.gauges()
        holding = self.house.open(root, tokens)
        if holding is None:
            assert self.house.cache.gauges() == before
            assert self.open, "a request that is alone finds room"
            return
        self.open.append(holding)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), wanted=st.integers(1, 9))
    def compute(self, data: st.DataObject, wanted: int) -> None:
        holding = data.draw(st.sampled_from(self.open))
        total = len(holding.history)
        if holding.computed == total:
            return
        end = self.house.cache.chunk_end(holding.computed, wanted, total)
        for block in holding.table[holding.computed // BLOCK : -(-end // BLOCK)]:
            assert self.house.pool.state(block) is BlockState.PRIVATE, "a sealed block is written to"
        self.house.arena.write(holding, holding.computed, end)
        holding.computed = holding.prefilled = end
        self.house.cache.commit(holding)

    @precondition(lambda self: self.open)
    @rule(data=st.data(), token=st.integers(0, 1))
    def decode(self, data: st.DataObject, token: int) -> None:
        holding = data.draw(st.sampled_from(self.open))
        if holding.computed < len(holding.history):
            return
        if not self.house.cache.grow(holding, len(holding.history) + 1):
            tree = self.house.cache.tree
            assert self.house.pool.free + tree.evictable_by(holding.history.root) == 0
            assert len(self.open) > 1 or len(holding.table) >= self.house.cache.usable_blocks
            return
        holding.history.append(token)
        self.house.arena.write(holding, holding.computed, holding.computed + 1)
        holding.computed += 1
        self.house.cache.commit(holding)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def share_tail(self, data: st.DataObject) -> None:
        self.house.cache.share_tail(data.draw(st.sampled_from(self.open)))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        holding = data.draw(st.sampled_from(self.open))
        self.open.remove(holding)
        self.house.cache.close(holding)

    @rule(root=st.sampled_from([ALICE, BOB, PUBLIC]), limits=LIMITS)
    def limit(self, root: bytes, limits: Limits) -> None:
        account = self.house.accounts.find(root)  # type: ignore[arg-type]
        before = account.limits.floor if account is not None else 0
        if self.house.accounts.floors - before + limits.floor <= 5:
            self.house.cache.limit(root, limits)  # type: ignore[arg-type]
        else:
            with pytest.raises(ValueError, match="reserved"):
                self.house.cache.limit(root, limits)  # type: ignore[arg-type]

    @invariant()
    def all_is_right(self) -> None:
        if hasattr(self, "house"):
            self.house.check(self.open)
            for holding in self.open:
                self.house.arena.verify(holding)

    def teardown(self) -> None:
        if hasattr(self, "house"):
            for holding in self.open:
                self.house.cache.close(holding)
            assert len(self.house.cache.leases) == 0
            assert self.house.pool.count(BlockState.PRIVATE) == 0


class QuantisedQuotaMachine(QuotaMachine):
    """The same with whole blocks only."""

    granularity = BLOCK


TestQuotas = QuotaMachine.TestCase
TestQuotas.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
TestQuantisedQuotas = QuantisedQuotaMachine.TestCase
TestQuantisedQuotas.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
