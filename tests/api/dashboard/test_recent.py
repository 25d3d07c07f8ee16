"""What is remembered of recent requests, and that it is bounded."""

from __future__ import annotations

import pytest

from hotprefix.api.dashboard.recent import Owner, RecentLimits, RecentRequests
from hotprefix.base.errors import Overloaded
from hotprefix.diagnosis.compare import Comparison
from hotprefix.modes.classes import Mode
from hotprefix.modes.doctor import Case
from hotprefix.modes.imprint import take_imprint
from hotprefix.modes.turn import Turn, TurnRequest
from hotprefix.profiles.loader import load_profiles
from tests.api.scripted_engine import ScriptedEngine
from tests.diagnosis.world import Chat
from tests.ledger.rows import row

PROFILE = load_profiles().default


def case(words: str, *, tenant: str = "acme", scene: str = "", partition: str = "") -> Case:
    """A request beside an earlier one with the same words."""
    chat = Chat([{"role": "user", "content": words}])
    prompt = chat.prompt()
    imprint = take_imprint(ScriptedEngine(), partition or tenant, "qwen-plus", prompt)
    request = TurnRequest(
        tenant, "qwen-plus", PROFILE, prompt, scene=scene, partition=partition, imprint=imprint
    )
    new, old = chat.snapshot(), chat.snapshot()
    return Case(Turn(request, Mode.IMPLICIT, 0), new, old, (), False, (), 0, Comparison(0, 0, 0), None)


def test_only_the_newest_requests_are_kept() -> None:
    recent = RecentRequests(RecentLimits(requests=3))
    for number in range(5):
        recent.add(row(number), case("hello"))
    assert len(recent) == 3
    assert recent.row("req-1") is None and recent.pair("req-1") is None
    assert recent.row("req-4") == row(4)
    pair = recent.pair("req-4")
    assert pair is not None and recent.bytes == 3 * pair.size


def test_prompts_go_before_their_rows_do() -> None:
    recent = RecentRequests(RecentLimits(bytes=60_000))
    for number in range(10):
        recent.add(row(number), case(f"{number}" * 5000))
        assert recent.bytes <= 60_000
    assert len(recent) == 10
    kept = [number for number in range(10) if recent.pair(f"req-{number}") is not None]
    assert kept and kept == list(range(kept[0], 10))


def test_a_prompt_that_is_larger_than_all_is_not_kept() -> None:
    recent = RecentRequests(RecentLimits(bytes=1000))
    recent.add(row(0), case("x" * 10_000))
    assert recent.bytes == 0 and recent.pair("req-0") is None
    assert recent.row("req-0") is not None


def test_without_words_no_prompt_is_kept() -> None:
    recent = RecentRequests(words=False)
    recent.add(row(0), case("secret"))
    assert recent.row("req-0") is not None
    assert recent.pair("req-0") is None and recent.bytes == 0


def test_an_id_that_comes_twice_is_counted_once() -> None:
    recent = RecentRequests()
    recent.add(row(0), case("hello"))
    size = recent.bytes
    recent.add(row(0), case("hello"))
    assert (len(recent), recent.bytes) == (1, size)


def test_roots_are_known_by_whoever_used_them() -> None:
    recent, engine = RecentRequests(RecentLimits(owners=2)), ScriptedEngine()
    recent.add(row(0), case("a", tenant="acme"))
    recent.add(row(1), case("b", tenant="acme", scene="bot@1", partition="part"))
    assert recent.owner(engine.root_for("acme")) == Owner("acme")
    assert recent.owner(engine.root_for("part")) == Owner("acme", "bot@1")
    assert recent.scene_of("part") == Owner("acme", "bot@1")
    assert recent.scene_of("acme") is None
    assert recent.roots_of("acme") == {engine.root_for("acme"), engine.root_for("part")}
    recent.add(row(2), case("c", tenant="other"))
    assert recent.owner(engine.root_for("acme")) is None  # the one not seen for longest


@pytest.mark.anyio
async def test_listeners_hear_what_is_theirs() -> None:
    recent = RecentRequests()
    with recent.listening(None) as every, recent.listening("acme") as acme:
        for number, tenant in enumerate(("acme", "other")):
            recent.add(row(number, tenant=tenant))
        assert [one.tenant for one in (await every.take(1))[0]] == ["acme", "other"]
        assert [one.tenant for one in (await acme.take(1))[0]] == ["acme"]
        assert await acme.take(0.001) == ([], False)
    recent.add(row(3))
    assert await acme.take(0.001) == ([], False)  # it has gone


@pytest.mark.anyio
async def test_a_slow_listener_is_told_that_it_missed_some() -> None:
    recent = RecentRequests(RecentLimits(backlog=2))
    with recent.listening(None) as listener:
        for number in range(3):
            recent.add(row(number))
        rows, missed = await listener.take(1)
        assert ([one.request_id for one in rows], missed) == (["req-1", "req-2"], True)
        recent.add(row(3))
        assert (await listener.take(1))[1] is False


def test_listeners_are_few() -> None:
    recent = RecentRequests(RecentLimits(listeners=1))
    with recent.listening(None), pytest.raises(Overloaded), recent.listening(None):
        pass
    with recent.listening(None):
        pass


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
