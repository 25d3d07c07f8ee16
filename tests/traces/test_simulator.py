"""Replays small enough to count by hand."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from hotprefix.base.ids import BlockKey
from hotprefix.profiles.loader import load_profiles
from hotprefix.traces.errors import BadReplay
from hotprefix.traces.latency import Percentiles, SpeedModel
from hotprefix.traces.outcome import Loss, Outcome
from hotprefix.traces.provider_rules import BillingMode, ProviderRules, rules_of
from hotprefix.traces.request import TraceRequest
from hotprefix.traces.routing import Routing
from hotprefix.traces.settings import ReplaySettings
from hotprefix.traces.simulator import merged_keys, replay

BLOCK = 100


class Traffic:
    """Requests for texts whose letters are blocks; what was seen before is known."""

    def __init__(self) -> None:
        self.requests: list[TraceRequest] = []
        self._seen: set[bytes] = set()

    def ask(self, text: str, at: float = 0.0, scope: str = "", tail: int = 0, output: int = 10) -> Traffic:
        keys = [BlockKey((scope + text[: place + 1]).encode()) for place in range(len(text))]
        known = 0
        while known < len(keys) and keys[known] in self._seen:
            known += 1
        self._seen.update(keys)
        length = len(text) * BLOCK + tail
        self.requests.append(TraceRequest(at, scope, keys, length, output, known))
        return self

    def replay(self, capacity: int = 100, policy: str = "lru", **more: object) -> Outcome:
        settings = ReplaySettings(capacity, policy, **more)  # type: ignore[arg-type]
        return replay(self.requests, BLOCK, [settings])[0]


def openai(model: str = "gpt-5.1") -> ProviderRules:
    return rules_of(load_profiles().get("openai-2026-09"), model, date(2026, 11, 1))


class TestLosses:
    def test_cold_and_hit(self) -> None:
        outcome = Traffic().ask("abc", tail=7).ask("abd").replay()
        assert (outcome.requests, outcome.blocks, outcome.hit_blocks, outcome.ideal_blocks) == (2, 6, 2, 2)
        assert (outcome.tokens, outcome.hit_tokens) == (607, 200)
        assert outcome.lost == {Loss.COLD: 407}
        assert outcome.block_rate == pytest.approx(1 / 3)

    def test_a_ragged_last_block_holds_no_more_than_the_prompt(self) -> None:
        outcome = Traffic().ask("ab", tail=-30).ask("ab", tail=-30).replay()
        assert outcome.hit_tokens == 170

    def test_evicted(self) -> None:
        outcome = Traffic().ask("ab").ask("xy").ask("ab").replay(capacity=3)
        # The leaf of the oldest prompt went first, its parent stayed.
        assert (outcome.hit_blocks, outcome.evicted) == (1, 2)
        assert outcome.lost == {Loss.COLD: 400, Loss.EVICTED: 100}

    def test_expired_and_renewed_by_use(self) -> None:
        traffic = Traffic().ask("ab", at=0).ask("ab", at=50).ask("ab", at=100).ask("ab", at=161)
        outcome = traffic.replay(lifetime=60)
        assert outcome.hit_blocks == 4
        assert outcome.aged == 2
        assert outcome.lost == {Loss.COLD: 200, Loss.EXPIRED: 200}

    def test_a_part_that_is_used_lives_on_while_the_rest_expires(self) -> None:
        traffic = Traffic().ask("abc", at=0).ask("a", at=50).ask("abc", at=100)
        outcome = traffic.replay(lifetime=60)
        assert (outcome.hit_blocks, outcome.aged) == (2, 2)

    def test_routed_elsewhere(self) -> None:
        traffic = Traffic().ask("ab").ask("xy").ask("xy").ask("ab")
        outcome = traffic.replay(replicas=2, routing=Routing.ROUND_ROBIN)
        assert outcome.lost == {Loss.COLD: 400, Loss.ELSEWHERE: 400}
        again = traffic.replay(replicas=2, routing=Routing.AFFINITY)
        assert again.hit_blocks == 4

    def test_below_minimum_and_rounded(self) -> None:
        rules = openai()
        assert (rules.minimum, rules.quantum) == (1024, 128)
        outcome = Traffic().ask("a" * 11).ask("a" * 10).ask("a" * 11).replay(rules=rules)
        assert outcome.hit_tokens == 2100
        assert outcome.counted_tokens == 1024
        assert outcome.lost == {Loss.COLD: 1100, Loss.BELOW_MINIMUM: 1000, Loss.ROUNDED: 76}

    def test_scopes_share_nothing(self) -> None:
        outcome = Traffic().ask("ab", scope="one").ask("ab", scope="two").replay()
        assert outcome.hit_blocks == 0

    def test_what_is_lost_and_what_counts_is_all_there_is(self) -> None:
        traffic = Traffic()
        for turn in range(60):
            traffic.ask("abcdefghijkl"[: 3 + turn % 9] + chr(200 + turn % 7), at=turn * 7.0)
        outcome = traffic.replay(
            capacity=9, replicas=3, routing=Routing.ROUND_ROBIN, lifetime=40.0, rules=openai()
        )
        assert outcome.counted_tokens + sum(outcome.lost.values()) == outcome.tokens
        assert len(outcome.lost) >= 4


class TestTier:
    def test_what_the_arena_gives_up_comes_back(self) -> None:
        traffic = Traffic().ask("ab").ask("xy").ask("ab")
        assert traffic.replay(capacity=2).hit_blocks == 0
        outcome = traffic.replay(capacity=2, tier=4)
        assert (outcome.hit_blocks, outcome.restored_blocks) == (2, 2)

    def test_it_is_limited_too(self) -> None:
        traffic = Traffic().ask("ab").ask("xy").ask("zz").ask("ab")
        assert traffic.replay(capacity=2, tier=2).hit_blocks == 0
        assert traffic.replay(capacity=2, tier=4).restored_blocks == 2

    def test_a_prefix_in_the_arena_is_gone_on_with_from_the_tier(self) -> None:
        traffic = Traffic().ask("abc").ask("x").ask("abc")
        outcome = traffic.replay(capacity=3, tier=9)
        assert (outcome.hit_blocks, outcome.restored_blocks) == (3, 1)
        assert outcome.lost[Loss.COLD] == 400


def test_a_prompt_longer_than_the_cache_keeps_its_beginning() -> None:
    outcome = Traffic().ask("abcdef").ask("abcdef").replay(capacity=4)
    assert (outcome.hit_blocks, outcome.evicted) == (4, 0)


@pytest.mark.parametrize("policy", ["lru", "slru", "adaptive"])
def test_a_cache_never_holds_more_than_it_may(policy: str) -> None:
    traffic = Traffic()
    for turn in range(300):
        traffic.ask("ab" + chr(300 + turn % 40) + chr(400 + turn * turn % 50))
    outcome = traffic.replay(capacity=20, policy=policy)
    assert outcome.evicted == outcome.blocks - outcome.hit_blocks - 20


KEYS = [BlockKey(bytes([number])) for number in range(7)]


class TestMerged:
    def test_a_key_stands_for_all_before_it(self) -> None:
        assert merged_keys(KEYS, 5, 3) == ([KEYS[2], KEYS[5], KEYS[6]], 1)
        assert merged_keys(KEYS, 7, 3)[1] == 3
        assert merged_keys(KEYS[:6], 6, 3) == ([KEYS[2], KEYS[5]], 2)
        assert merged_keys([], 0, 3) == ([], 0)

    def test_larger_blocks_find_less(self) -> None:
        traffic = Traffic().ask("abcdef").ask("abcxyz").ask("abcdeq")
        assert traffic.replay(merged=1).hit_tokens == 800
        assert traffic.replay(merged=2).hit_tokens == 600
        assert traffic.replay(merged=3).hit_tokens == 600


class TestMoney:
    def test_implicit(self) -> None:
        rules = rules_of(load_profiles().get("dashscope-2026-03"), "qwen-plus", date(2026, 11, 1))
        outcome = Traffic().ask("a" * 10, output=7).ask("a" * 10, output=7).replay(rules=rules)
        assert outcome.money is not None
        each, answer = Decimal("0.0000008"), Decimal("0.000002")
        assert outcome.money.currency == "CNY"
        assert outcome.money.uncached == 2000 * each + 14 * answer
        assert outcome.money.actual == 1000 * each + 1000 * each * Decimal("0.2") + 14 * answer
        assert outcome.money.ideal == outcome.money.actual

    def test_explicit_writes_what_it_does_not_read_and_forgets_after_its_lifetime(self) -> None:
        rules = rules_of(load_profiles().get("anthropic-2026-09"), "claude-sonnet-4-6", date(2026, 11, 1))
        assert (rules.mode, rules.lifetime) == (BillingMode.EXPLICIT, 300)
        traffic = (
            Traffic().ask("a" * 12, at=0).ask("a" * 12, at=299).ask("a" * 12, at=700).ask("b" * 2, at=701)
        )
        outcome = traffic.replay(rules=rules)
        assert outcome.money is not None
        each = Decimal("0.000003")
        prompts = 2 * 1200 * each * Decimal("1.25") + 1200 * each * Decimal("0.1") + 200 * each
        assert outcome.money.actual == prompts + 40 * Decimal("0.000015")
        assert outcome.lost[Loss.EXPIRED] == 1200

    def test_a_mode_that_the_vendor_lacks(self) -> None:
        profile = load_profiles().get("openai-2026-09")
        with pytest.raises(BadReplay, match="no explicit cache"):
            rules_of(profile, "gpt-5.1", date(2026, 11, 1), BillingMode.EXPLICIT)


class TestTime:
    SPEED = SpeedModel(fixed=1.0, computed=0.01, restored=0.001, found=0.0)

    def test_hits_are_faster_and_waiting_is_told_apart(self) -> None:
        outcome = Traffic().ask("ab").ask("ab").replay(speed=self.SPEED)
        assert outcome.first_token.mean == pytest.approx((3 + 1) / 2)
        assert outcome.first_token.p99 == pytest.approx(3, rel=0.01)
        # The second came while the first was computed.
        assert outcome.first_token.queued_p95 == pytest.approx(4, rel=0.01)

    def test_restored_tokens_have_a_price_of_their_own(self) -> None:
        outcome = Traffic().ask("ab").ask("xy").ask("ab").replay(capacity=2, tier=4, speed=self.SPEED)
        assert outcome.first_token.mean == pytest.approx((3 + 3 + 1.2) / 3)

    def test_affinity_weighs_known_blocks_against_the_queue(self) -> None:
        traffic = Traffic().ask("ab", at=0).ask("ab", at=0).ask("ab", at=100)
        outcome = traffic.replay(replicas=2, routing=Routing.AFFINITY, speed=self.SPEED)
        # At once the first replica is busy for longer than computing takes on the other.
        assert outcome.hit_blocks == 2
        assert outcome.lost[Loss.ELSEWHERE] == 200

    def test_least_loaded(self) -> None:
        traffic = Traffic().ask("abcdef", at=0).ask("x", at=0).ask("y", at=2.5)
        outcome = traffic.replay(replicas=2, routing=Routing.LEAST_LOADED, speed=self.SPEED)
        assert outcome.first_token.queued_p50 == pytest.approx(2, rel=0.01)

    def test_percentiles_are_within_one_percent(self) -> None:
        times = Percentiles()
        for number in range(1, 1001):
            times.add(number / 1000)
        for share in (0.01, 0.5, 0.95, 0.99, 1.0):
            assert times.at(share) == pytest.approx(share, rel=0.01)
        assert times.mean == pytest.approx(0.5005)
        assert (Percentiles().at(0.5), Percentiles().mean) == (0.0, 0.0)


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(BadReplay, match="no policy 'fifo'"):
        ReplaySettings(10, "fifo")
    with pytest.raises(BadReplay, match="at least one block"):
        ReplaySettings(0)


def test_an_outcome_as_json() -> None:
    facts = Traffic().ask("a" * 12).ask("a" * 12).replay(rules=openai()).facts()
    assert facts["hit_tokens"] == 1200
    assert facts["lost_tokens"]["cold"] == 1200
    assert facts["money"]["currency"] == "USD"
    assert set(facts["first_token_seconds"]) == {"mean", "p50", "p95", "p99", "queued_p50", "queued_p95"}
