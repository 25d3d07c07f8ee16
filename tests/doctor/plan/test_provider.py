"""Which of a vendor's caches is cheapest, worked out by hand."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from hotprefix.doctor.plan.errors import PlanError
from hotprefix.doctor.plan.provider.compare import ProviderPlan, ProviderWish, StrategyCost, plan_provider
from hotprefix.doctor.plan.provider.document import provider_facts
from hotprefix.doctor.plan.provider.sharing import Sharing
from hotprefix.doctor.plan.provider.strategy import CacheMode
from hotprefix.profiles.loader import load_profiles
from hotprefix.traces.source import TraceSource
from tests.doctor.plan.traces import BLOCK, Line, source_of

BOOK = load_profiles()
INPUT, OUTPUT = Decimal("0.8") / 10**6, Decimal(2) / 10**6
"""qwen-plus, in CNY a token. Read 20 % (implicit) or 10 %, write 125 %; from 256 or 1,024 tokens on."""
SYSTEM = list(range(100))
"""1,600 tokens."""


def planned(
    source: TraceSource, profile: str = "dashscope-2026-03", model: str = "qwen-plus"
) -> ProviderPlan:
    return plan_provider(source, ProviderWish(BOOK.get(profile), model, date(2026, 11, 30)))


def one(
    plan: ProviderPlan, mode: CacheMode, shared: int = 0, *, tail: bool = False, ttl: str = "5m"
) -> StrategyCost:
    for cost in plan.costs:
        strategy = cost.strategy
        if (strategy.mode, strategy.shared, strategy.has_tail) == (mode, shared, tail) and strategy.ttl in (
            "",
            ttl,
        ):
            return cost
    raise AssertionError(mode)


def questions(count: int, gap: float) -> list[Line]:
    """A system prompt of 1,600 tokens and a question of 16 of its own each."""
    return [(gap * n, 101 * BLOCK, 10, [*SYSTEM, 1_000 + n]) for n in range(count)]


def test_bills_of_a_shared_system_prompt(tmp_path: Path) -> None:
    plan = planned(source_of(tmp_path / "t.jsonl", questions(10, 60.0)))
    answers = 100 * OUTPUT
    assert plan.uncached == 16_160 * INPUT + answers
    implicit = one(plan, CacheMode.IMPLICIT)
    assert implicit.tokens.read == 9 * 1_600
    assert implicit.cost == (16_160 - 14_400) * INPUT + 14_400 * INPUT * Decimal("0.2") + answers
    shared = one(plan, CacheMode.EXPLICIT, 1)
    assert (shared.tokens.written, shared.tokens.read) == (1_600, 9 * 1_600)
    assert shared.cost == pytest.approx(
        1_600 * INPUT * Decimal("1.25") + 14_400 * INPUT * Decimal("0.1") + 160 * INPUT + answers
    )
    tail = one(plan, CacheMode.EXPLICIT, 0, tail=True)
    assert (tail.tokens.written, tail.tokens.read) == (16_160, 0)
    assert tail.cost > plan.uncached
    session = one(plan, CacheMode.SESSION)
    assert session.cost == tail.cost
    assert plan.best is shared
    assert plan.best.strategy.markers == 1
    assert shared.hit_rate == pytest.approx(14_400 / 16_160)


def test_a_conversation_wants_its_marker_at_the_end(tmp_path: Path) -> None:
    lines = [(60.0 * n, (100 + 4 * n) * BLOCK, 10, list(range(100 + 4 * n))) for n in range(20)]
    plan = planned(source_of(tmp_path / "t.jsonl", lines))
    tail = one(plan, CacheMode.EXPLICIT, 0, tail=True)
    assert tail.tokens.written == (100 + 4 * 19) * BLOCK
    assert tail.tokens.read == sum(100 + 4 * n for n in range(19)) * BLOCK
    assert tail.tokens.computed == 0
    assert plan.best.strategy.has_tail or plan.best.strategy.mode is CacheMode.SESSION


def test_entries_end_five_minutes_after_their_last_use(tmp_path: Path) -> None:
    within = planned(source_of(tmp_path / "a.jsonl", questions(10, 299.0)))
    beyond = planned(source_of(tmp_path / "b.jsonl", questions(10, 302.0)))
    assert one(within, CacheMode.EXPLICIT, 1).tokens.read == 14_400
    assert one(beyond, CacheMode.EXPLICIT, 1).tokens.read == 0
    assert one(beyond, CacheMode.EXPLICIT, 1).tokens.written == 16_000
    assert beyond.best.strategy.mode in (CacheMode.NONE, CacheMode.IMPLICIT)


def test_requests_at_once_each_write(tmp_path: Path) -> None:
    plan = planned(source_of(tmp_path / "t.jsonl", questions(10, 0.05)))
    assert one(plan, CacheMode.EXPLICIT, 1).tokens.written == 16_000
    assert one(plan, CacheMode.EXPLICIT, 1).tokens.read == 0


def test_what_is_too_short_is_not_cached(tmp_path: Path) -> None:
    lines = [(10.0 * n, 61 * BLOCK, 1, [*range(60), 1_000 + n]) for n in range(10)]
    plan = planned(source_of(tmp_path / "t.jsonl", lines))
    assert one(plan, CacheMode.EXPLICIT, 1).tokens.written == 0
    assert one(plan, CacheMode.EXPLICIT, 1).cost == plan.uncached
    assert one(plan, CacheMode.IMPLICIT).tokens.read == 9 * 960
    assert plan.best.strategy.mode is CacheMode.IMPLICIT


def test_anthropic_has_longer_lives_and_no_implicit_cache(tmp_path: Path) -> None:
    plan = planned(
        source_of(tmp_path / "t.jsonl", questions(20, 900.0)), "anthropic-2026-09", "claude-sonnet-5"
    )
    assert {cost.strategy.mode for cost in plan.costs} == {CacheMode.NONE, CacheMode.EXPLICIT}
    assert (plan.best.strategy.ttl, plan.best.strategy.markers) == ("1h", 1)
    assert len(plan.costs) == 1 + 2 * 8
    assert all(cost.strategy.markers <= 4 for cost in plan.costs)


def test_steps_and_minimums_of_openai(tmp_path: Path) -> None:
    plan = planned(source_of(tmp_path / "t.jsonl", questions(10, 60.0)), "openai-2026-09", "gpt-5")
    rules = BOOK.get("openai-2026-09").implicit
    assert rules is not None
    read = one(plan, CacheMode.IMPLICIT).tokens.read
    assert read == 9 * (1_600 - 1_600 % rules.quantum)


def test_markers_stand_where_prompts_part(tmp_path: Path) -> None:
    """A system prompt for all, and behind it one of two handbooks."""
    lines = [
        (
            float(n),
            221 * BLOCK,
            1,
            [*SYSTEM, *(10_000 * (1 + n % 2) + place for place in range(120)), 1_000 + n],
        )
        for n in range(10)
    ]
    source = source_of(tmp_path / "t.jsonl", lines)
    sharing = Sharing(source.block_size)
    requests = list(source.requests())
    for request in requests:
        sharing.note(request)
    for request in requests:
        assert sharing.places(request, 4, 1_024) == [100, 220] or sharing.places(request, 4, 1_024) == [
            220,
            100,
        ]
        assert sharing.places(request, 4, 1_601) == [220]
        assert sharing.places(request, 1, 1_024) == [220 if 220 * 4 > 100 * 9 else 100]


def test_traces_without_identity_tell_nothing(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    rows = "\n".join(f"2023-11-16 18:17:{n % 60:02}.0,100,10" for n in range(5))
    file.write_text(f"TIMESTAMP,ContextTokens,GeneratedTokens\n{rows}\n")
    with pytest.raises(PlanError, match="which prompts are alike"):
        planned(TraceSource([file]))


def test_json(tmp_path: Path) -> None:
    facts = provider_facts(planned(source_of(tmp_path / "t.jsonl", questions(10, 60.0))))
    assert (
        facts["best"] == facts["strategies"][0]
        or facts["best"]["markers"] <= facts["strategies"][0]["markers"]
    )
    assert Decimal(facts["best"]["cost"]) < Decimal(facts["uncached"])
    assert facts["currency"] == "CNY"
