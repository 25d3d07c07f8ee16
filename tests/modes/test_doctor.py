"""What the doctor says of implicit misses, by the log of a real prefix cache."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.rules import ReuseRules
from hotprefix.diagnosis.memory import MemoryLimits, SnapshotMemory
from hotprefix.diagnosis.reason import Evidence, MissReport, Reason
from hotprefix.keys.chain import TokenHistory
from hotprefix.kv.accounts import Accounts, Limits, QuotaMode
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.policy.quota import QuotaPolicy
from hotprefix.kv.pool import BlockPool
from hotprefix.kv.tree import BlockTree
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.modes.doctor import Doctor
from hotprefix.modes.imprint import take_imprint
from hotprefix.modes.turn import TurnRequest
from hotprefix.prompt.spans import SpannedPrompt
from tests.cache.machine_parts import TrueArena
from tests.modes.worlds import BLOCK, World, prompt

ROOM = 40
"""Blocks of the arena."""


class Ward:
    """A doctor, and a real prefix cache whose log it reads."""

    def __init__(self, log: EvictionLog | None = None, memory: MemoryLimits | None = None) -> None:
        self.world = World("hotprefix")
        accounts = Accounts(ROOM // 2)
        quotas = QuotaPolicy(lambda: POLICIES["lru"](ROOM), accounts)
        self.cache = PrefixCache(
            BlockPool(ROOM),
            BlockTree(BLOCK, quotas, accounts),
            ReuseRules(BLOCK),
            LogitsStore(0),
            TrueArena(ROOM, BLOCK),
            quotas,
        )
        if log is not None:
            self.cache.evictions = log
            self.cache.on_evicted[0], self.cache.on_sealed[0] = log.evicted, log.sealed
        caching, clock = self.world.caching, self.world.clock
        self.doctor = Doctor(SnapshotMemory(memory), caching, clock, self.cache.evictions)

    def ask(self, *blocks: tuple[str, int], reads: bool = True, early: bool = True) -> MissReport:
        """A request from its beginning to its end. With `reads` false the cache is passed over; `early`
        reports come before the blocks are sealed."""
        words = prompt(*blocks)
        request = self.world.request(words)
        request = replace(
            request, imprint=take_imprint(self.world.caching, "t", request.model, request.prompt)
        )
        turn, arrived = self.world.caching.begin(request), self.doctor.moment
        assert turn.mode is Mode.IMPLICIT
        reused = self._serve(words) if reads and not early else 0
        if reads and early:
            reused = self.cache.plan(self._history(words)).reused
        case = self.doctor.open(turn, arrived)
        classes = TokenClasses(Mode.IMPLICIT, len(words.token_ids) - reused, reused, output=1)
        report = self.doctor.report(case, classes)
        if reads and early:
            self._serve(words)
            assert self.doctor.report(case, classes) == report, "whatever was sealed meanwhile"
        self.doctor.close(case, classes, ("", ()))
        return report

    def _history(self, words: SpannedPrompt) -> TokenHistory:
        return TokenHistory(self.world.pins.root_for("t"), words.token_ids, BLOCK)

    def _serve(self, words: SpannedPrompt) -> int:
        history = self._history(words)
        holding = self.cache.open(history, self.cache.plan(history))
        assert holding is not None
        reused, holding.computed, holding.prefilled = holding.computed, len(history), len(history)
        self.cache.close(holding)
        return reused


RULES = ("rules", 10 * BLOCK)
FLOOD = [(f"other{number}", 12 * BLOCK) for number in range(4)]


@pytest.mark.parametrize("early", [True, False])
def test_what_had_to_make_room_is_proved_by_the_log(early: bool) -> None:
    ward = Ward()
    assert ward.ask(RULES, ("first", 40)).reason is Reason.COLD_FIRST_USE
    assert ward.ask(RULES, ("second", 40)).reason is Reason.NONE
    for flood in FLOOD:
        ward.ask(flood)
    report = ward.ask(RULES, ("third", 40), early=early)
    assert (report.reason, report.detail) == (Reason.EVICTED, "CAPACITY")
    assert report.evidence is Evidence.STORE_LOG
    assert report.ideal >= 10 * BLOCK
    assert ward.ask(RULES, ("fourth", 40)).reason is Reason.NONE, "it is back"


def test_a_new_prompt_is_no_eviction_however_many_there_were() -> None:
    ward = Ward()
    for flood in FLOOD:
        ward.ask(flood)
    assert len(ward.cache.evictions) > 0
    assert ward.ask(RULES).reason is Reason.COLD_FIRST_USE


def test_what_is_not_in_the_log_was_not_evicted() -> None:
    ward = Ward()
    for flood in FLOOD:
        ward.ask(flood)
    ward.ask(RULES, ("first", 40))
    report = ward.ask(RULES, ("second", 40), reads=False)
    assert (report.reason, report.evidence) == (Reason.UNKNOWN, Evidence.INFERRED)


def test_a_log_that_has_forgotten_makes_it_an_inference() -> None:
    ward = Ward(EvictionLog(limit=4))
    ward.ask(RULES, ("first", 40))
    for flood in FLOOD:
        ward.ask(flood)
    assert not ward.cache.evictions.is_complete
    report = ward.ask(RULES, ("second", 40))
    assert (report.reason, report.detail, report.evidence) == (Reason.EVICTED, "CAPACITY", Evidence.INFERRED)
    assert ward.ask(("unheard of", 9 * BLOCK)).reason is Reason.COLD_FIRST_USE


def test_the_log_knows_more_than_the_memory_of_prompts() -> None:
    ward = Ward(memory=MemoryLimits(snapshots=1))
    ward.ask(RULES, ("first", 40))
    for flood in FLOOD:
        ward.ask(flood)
    report = ward.ask(RULES, ("second", 40))
    assert (report.reason, report.ideal, report.matched) == (Reason.EVICTED, 10 * BLOCK, 0)


def test_a_tenant_over_its_share_is_told_so() -> None:
    ward = Ward()
    ward.cache.limit(ward.world.pins.root_for("t"), Limits(ceiling=12, mode=QuotaMode.REPLACE))
    ward.ask(RULES, ("first", 40))
    ward.ask(("other", 12 * BLOCK))
    report = ward.ask(RULES, ("second", 40))
    assert (report.reason, report.detail) == (Reason.EVICTED, "TENANT_QUOTA")


def test_without_an_imprint_the_doctor_takes_one() -> None:
    ward = Ward()
    words = prompt(RULES)
    bare = TurnRequest("t", "some-model", ward.world.profile, words)
    turn = ward.world.caching.begin(bare)
    case = ward.doctor.open(turn)
    assert list(case.block_keys) == list(
        take_imprint(ward.world.caching, "t", "some-model", words).block_keys
    )
    ward.doctor.close(case, None, ("", ()))
