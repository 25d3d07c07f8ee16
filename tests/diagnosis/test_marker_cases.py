"""Marker and lifetime rules: the cases of the design's test suite, by number."""

from __future__ import annotations

from typing import Any

import pytest

from hotprefix.diagnosis.explain import explain
from hotprefix.diagnosis.facts import (
    EXPLICIT,
    IMPLICIT,
    SESSION,
    CacheRules,
    EngineFacts,
    Eviction,
    MarkerFacts,
    MissFacts,
    PlacementFacts,
    StoreFacts,
    rules_of,
)
from hotprefix.diagnosis.reason import Evidence, MissReport, Reason
from hotprefix.diagnosis.store_rules import MARKER_MOVED
from hotprefix.profiles.loader import load_profiles
from tests.diagnosis.world import Chat, Message, World, assistant, rules_text, system, turns, user

RULES = rules_text(1200)
DASHSCOPE = CacheRules(minimum=1024, lookback=20)


def test_the_rules_of_a_vendor_come_from_its_profile() -> None:
    profile = load_profiles().get("dashscope-2026-03")
    assert rules_of(profile, EXPLICIT, "qwen-plus") == CacheRules(1024, 1, 20, False)
    assert rules_of(profile, SESSION, "qwen-plus").minimum == 1024
    assert rules_of(profile, IMPLICIT, "qwen-plus").minimum == 256
    assert rules_of(profile, "none", "qwen-plus") == CacheRules()


def marked(extra: list[Message], *markers: int) -> Chat:
    return Chat([system(RULES), *extra], markers=markers)


@pytest.mark.parametrize("missing", [1, 0, -1])
def test_T16_below_the_minimum_by_one(missing: int) -> None:
    chat = marked([user("Go")], 0)
    end = chat.prompt().spans[0].end_token
    world = World()
    rules = CacheRules(minimum=end + missing, lookback=20)
    first, second = world.explicit(chat, rules), world.explicit(chat, rules)
    if missing > 0:
        for report in (first, second):
            assert (report.reason, report.detail) == (Reason.BELOW_MIN, "1")
            assert "lacks 1 token" in report.advice_en
            assert report.avoidable
        assert second.lost_tokens >= end
    else:
        assert first.reason is Reason.COLD_FIRST_USE
        assert (second.reason, second.matched) == (Reason.NONE, end)


def test_T16_an_implicit_prompt_below_the_minimum_is_nobodys_fault() -> None:
    chat = Chat([system("Short."), user("Go")])
    world = World()
    report = world.implicit(chat, matched=0, rules=CacheRules(minimum=256))
    missing = 256 - len(chat.prompt().token_ids)
    assert (report.reason, report.detail) == (Reason.BELOW_MIN, str(missing))
    assert not report.avoidable


def test_T17_markers_that_did_not_count_are_named() -> None:
    chat = marked(turns(4), 2, 4, 6, 8)
    ignored = MarkerFacts(ignored=("messages[0].content[0]",), most=4)
    report = World().explicit(chat, DASHSCOPE, markers=ignored)
    assert report.reason is Reason.TOO_MANY_MARKERS
    assert "messages[0].content[0]" in report.advice_en
    assert "messages[0].content[0]" in report.advice_zh


@pytest.mark.parametrize(("at", "is_hit"), [(30, True), (31, False)])
def test_T18_the_edge_of_the_look_back(at: int, is_hit: bool) -> None:
    talk, world = turns(20), World()
    world.explicit(marked(talk[:12], 10), DASHSCOPE)
    report = world.explicit(marked(talk[:32], at), DASHSCOPE)
    if is_hit:
        assert report.reason is Reason.NONE
        assert report.matched > 1200
    else:
        assert (report.reason, report.detail) == (Reason.LOOKBACK_EXCEEDED, "21 of 20")
        assert report.matched == 0
        assert report.lost_tokens > 1200


def test_T18_where_the_markers_own_block_counts_the_edge_is_one_nearer() -> None:
    talk, world = turns(20), World()
    rules = CacheRules(minimum=1024, lookback=20, lookback_counts_marker=True)
    world.explicit(marked(talk[:12], 10), rules)
    snapshot = marked(talk[:32], 30).snapshot()
    report = explain(MissFacts(snapshot, world.memory.nearest("t", snapshot), EXPLICIT, 0, rules))
    assert (report.reason, report.detail) == (Reason.LOOKBACK_EXCEEDED, "20 of 19")


def test_T20_a_marker_on_the_last_user_turn_alone() -> None:
    world = World()
    for number in range(4):
        facts = MarkerFacts(writes_unread=number)
        chat = marked([user(f"Question {number}: where does item {number} go?")], 1)
        report = world.explicit(chat, DASHSCOPE, markers=facts)
        assert report.reason is (Reason.WRITE_ONLY if number >= 3 else Reason.COLD_FIRST_USE)
    assert report.lost_tokens > 1200
    assert report.evidence is Evidence.STORE_LOG


def test_T23_a_change_behind_the_last_marker_is_no_break() -> None:
    world, talk = World(), turns(4)
    world.explicit(marked([*talk, user("Now: 09:14. " + "Where is it? " * 30)], 0), DASHSCOPE)
    edited = [user("An edited start."), *talk[1:], user("Now: 09:15. " + "Where is it? " * 30)]
    report = world.explicit(marked(edited, 0), DASHSCOPE)
    assert report.reason is Reason.NONE
    assert report.divergence is None
    assert report.lost_tokens == 0


def test_T23_a_change_before_the_last_marker_is_one() -> None:
    world, talk = World(), turns(4)
    world.explicit(marked(talk, 8), DASHSCOPE)
    report = world.explicit(marked([user("An edited start."), *talk[1:]], 8), DASHSCOPE)
    assert report.reason is Reason.HISTORY_EDITED
    assert report.divergence is not None
    assert report.divergence.path == "messages[1].content"


def test_T24_modes_that_exclude_each_other() -> None:
    report = World().explicit(
        marked([user("Go")], 0), DASHSCOPE, markers=MarkerFacts(conflict="explicit/session")
    )
    assert report.reason is Reason.MODE_CONFLICT
    assert "explicit/session" in report.advice_en


def test_T26_a_hit_at_four_fifty_nine_and_an_end_at_five_one() -> None:
    world, chat, other = (
        World(),
        marked([user("Go")], 0),
        Chat([system(rules_text(1300, "Dock")), user("Go")]),
    )
    other.markers = (0,)
    world.explicit(chat, DASHSCOPE)
    world.clock.advance(299)
    assert world.explicit(chat, DASHSCOPE).reason is Reason.NONE
    world.clock.advance(200)
    world.explicit(other, DASHSCOPE)
    world.clock.advance(101)
    late = world.explicit(chat, DASHSCOPE)
    assert late.reason is Reason.TTL_EXPIRED
    assert late.detail == "1 s after the end of 300 s"
    assert world.explicit(other, DASHSCOPE).reason is Reason.NONE


def test_T26_without_a_log_the_promised_end_of_this_prefix_is_inferred() -> None:
    chat = marked([user("Go")], 0)
    end = chat.prompt().spans[0].end_token
    old = chat.snapshot(0.0).written({0: 300.0})
    for now, reason in ((299.0, Reason.UNKNOWN), (301.0, Reason.TTL_EXPIRED)):
        report = explain(MissFacts(chat.snapshot(now), old, EXPLICIT, 0, DASHSCOPE))
        assert report.reason is reason
        assert report.ideal == end
        assert report.evidence is Evidence.INFERRED


def test_T27_equal_requests_at_once() -> None:
    world, chat = World(), marked([user("Go")], 0)
    assert world.explicit(chat, DASHSCOPE).reason is Reason.COLD_FIRST_USE
    world.entries.clear()
    report = world.explicit(chat, DASHSCOPE, store=StoreFacts(is_write_pending=True))
    assert report.reason is Reason.WRITE_PENDING


def test_T45_T47_what_the_store_knows() -> None:
    cases: list[tuple[dict[str, Any], Reason, str]] = [
        ({"evicted": Eviction.CAPACITY}, Reason.EVICTED, "CAPACITY"),
        ({"evicted": Eviction.TENANT_QUOTA}, Reason.EVICTED, "TENANT_QUOTA"),
        ({"evicted": Eviction.TOO_BIG}, Reason.EVICTED, "TOO_BIG"),
        ({"flushed": "adapter"}, Reason.FLUSHED, "adapter"),
        ({"is_pin_failed": True}, Reason.STORE_FAILED, "PIN_FAILED"),
        ({"failed": "disk full"}, Reason.STORE_FAILED, "disk full"),
        ({"is_lost_at_restart": True}, Reason.RESTART_LOST, ""),
    ]
    for facts, reason, detail in cases:
        report = repeated(store=StoreFacts(**facts))
        assert (report.reason, report.detail) == (reason, detail)
        assert report.evidence is Evidence.STORE_LOG
        assert report.lost_tokens > 1200


def test_T40_T54_engine_and_placement() -> None:
    cases: list[tuple[dict[str, Any], Reason]] = [
        ({"engine": EngineFacts(block_size=4096)}, Reason.BELOW_BLOCK),
        ({"engine": EngineFacts(no_rollback="SWA")}, Reason.NO_ROLLBACK),
        ({"engine": EngineFacts(missing_state="logits")}, Reason.STATE_MISSING),
        ({"engine": EngineFacts(disabled="prefix cache")}, Reason.FEATURE_DISABLED),
        ({"placement": PlacementFacts(routed_elsewhere="worker 2")}, Reason.ROUTED_ELSEWHERE),
        ({"placement": PlacementFacts(router_blind="hash seed")}, Reason.ROUTER_BLIND),
        ({"is_best_effort": True}, Reason.BEST_EFFORT),
        ({}, Reason.UNKNOWN),
    ]
    for facts, reason in cases:
        assert repeated(**facts).reason is reason


def repeated(**facts: Any) -> MissReport:
    """The report of an implicit prompt that was there before and was not read."""
    world, chat = World(), Chat([system(RULES), user("Go")])
    world.implicit(chat)
    return world.implicit(chat, matched=0, **facts)


def test_another_tenants_prefix_looks_like_a_first_use() -> None:
    chat = Chat([system(RULES), user("Go")])
    plain = World().implicit(chat)
    known = World().implicit(chat, store=StoreFacts(known_to_others=True))
    assert known == plain
    assert known.reason is Reason.COLD_FIRST_USE


def test_an_unreported_count_is_not_zero() -> None:
    snapshot = Chat([system(RULES), user("Go")]).snapshot()
    report = explain(MissFacts(snapshot, snapshot, EXPLICIT, None))
    assert (report.reason, report.lost_tokens) == (Reason.NOT_REPORTED, 0)


def test_rounded_hits_have_lost_nothing() -> None:
    world, chat = World(), Chat([system(RULES), user("Go")])
    world.implicit(chat)
    full = len(chat.prompt().token_ids) - 1
    rules = CacheRules(minimum=256, quantum=128)
    assert world.implicit(chat, matched=full - full % 128, rules=rules).reason is Reason.NONE
    assert world.implicit(chat, matched=full - full % 128 - 128, rules=rules).reason is Reason.UNKNOWN


def test_a_model_that_needs_markers() -> None:
    report = repeated(markers=MarkerFacts(is_needed=True))
    assert (report.reason, report.detail) == (Reason.NO_MARKER, "NEEDS_EXPLICIT")


def test_markers_on_a_model_without_explicit_cache() -> None:
    assert repeated(markers=MarkerFacts(is_unsupported=True)).reason is Reason.MODEL_NOT_SUPPORTED


def test_a_last_marker_that_stays_while_the_talk_grows() -> None:
    world, talk = World(), turns(10)
    world.explicit(marked(talk[:15], 0), DASHSCOPE)
    report = world.explicit(marked(talk[:19], 0), DASHSCOPE, markers=MarkerFacts(is_frozen=True))
    assert report.reason is Reason.FROZEN_MARKERS
    assert report.lost_tokens > 300


def test_a_marker_that_moved_before_the_entry() -> None:
    world, talk = World(), turns(6)
    world.explicit(marked(talk, 8), DASHSCOPE)
    report = world.explicit(marked(talk, 4), DASHSCOPE)
    assert (report.reason, report.detail) == (Reason.COLD_FIRST_USE, MARKER_MOVED)
    assert report.avoidable


def test_the_markers_of_a_conversation_are_remembered_as_it_grows() -> None:
    world, talk = World(), turns(12)
    world.explicit(marked(talk[:5], 0), DASHSCOPE)
    world.explicit(marked(talk[:9], 8), DASHSCOPE)
    branched = [*talk[:4], user("Something else?")]
    snapshot = marked(branched, 0, 5).snapshot()
    earlier = world.memory.nearest("t", snapshot)
    assert earlier is not None
    assert earlier.markers == (0, 8)
    report = explain(MissFacts(snapshot, earlier, EXPLICIT, 0, DASHSCOPE))
    assert report.ideal == snapshot.blocks[0].end_token


def test_a_session_goes_on_from_its_last_block() -> None:
    talk = turns(4)
    old = marked(talk[:3], 3).snapshot()
    new = marked(talk[:5], 5).snapshot()
    end = old.blocks[3].end_token
    assert explain(MissFacts(new, old, SESSION, end, CacheRules(1024))).reason is Reason.NONE
    cold = explain(MissFacts(new, old, SESSION, 0, CacheRules(1024), store=StoreFacts(expired_for=2.0)))
    assert (cold.reason, cold.lost_tokens) == (Reason.TTL_EXPIRED, end)


def test_lost_money_is_what_reading_would_have_saved() -> None:
    report = repeated(store=StoreFacts(evicted=Eviction.CAPACITY), money_per_million=8.0)
    assert report.lost_money == pytest.approx(report.lost_tokens * 8e-6)


def test_a_change_in_the_request_goes_before_what_the_store_knows() -> None:
    world = World()
    world.implicit(Chat([system("At 09:14\n" + RULES), *turns(2), user("Go"), assistant("ok"), user("on")]))
    chat = Chat([system("At 09:15\n" + RULES), *turns(2), user("Go"), assistant("ok"), user("on")])
    assert world.implicit(chat, store=StoreFacts(evicted=Eviction.CAPACITY)).reason is Reason.SYSTEM_CHANGED
