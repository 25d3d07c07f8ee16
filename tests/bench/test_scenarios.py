"""What the scenarios send, in which order, and what they make of the answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from hotprefix.base.clock import SystemClock
from hotprefix.base.errors import HotprefixError
from hotprefix.bench.concurrent import measure_concurrent
from hotprefix.bench.conversation import measure_conversation
from hotprefix.bench.findings import Finding
from hotprefix.bench.prefix import measure_prefix
from hotprefix.bench.scenario import Peer, Tick, Trial
from hotprefix.bench.short import Round, measure_short, short_finding
from hotprefix.bench.workload import Sizes, Workload
from tests.bench.answering import Answering, client_of

SIZES = Sizes(
    prefix=40,
    suffix=5,
    misses=2,
    hits=4,
    system=50,
    question=6,
    answer=4,
    turns=3,
    conversations=2,
    clients=5,
    shared=20,
    own=3,
    out=4,
    rounds=2,
    short_rounds=4,
    quads=1,
    short_longest=12,
    short_out=2,
)


class Counting:
    """Progress that counts its steps."""

    def __init__(self) -> None:
        self.wanted = self.done = 0

    def task(self, title: str, steps: int) -> Tick:
        self.wanted += steps
        return self._tick

    def _tick(self) -> None:
        self.done += 1


class SlowPeer:
    """Notes what it is asked and claims to need ages."""

    about = "a slow peer"

    def __init__(self) -> None:
        self.asked: list[tuple[list[list[int]], int]] = []

    async def seconds(self, prompts: Sequence[Sequence[int]], out: int) -> float:
        self.asked.append(([list(prompt) for prompt in prompts], out))
        return 1e9


class Stage:
    """Two servers and what they were asked, in one order."""

    def __init__(self, *, judged: bool = True, peer: Peer | None = None) -> None:
        self.log: list[tuple[str, Any]] = []
        self.cached = Answering("cached", self.log)
        self.plain = Answering("plain", self.log)
        self.progress = Counting()
        self._judged, self._peer = judged, peer

    def run(self, scenario: Callable[[Trial], Awaitable[Finding]]) -> Finding:
        async def play() -> Finding:
            clock = SystemClock()
            async with client_of(self.cached, clock) as cached, client_of(self.plain, clock) as plain:
                work = Workload(3, 1000)
                trial = Trial(cached, plain, SIZES, work, self.progress, 3, self._judged, self._peer)
                return await scenario(trial)

        finding = asyncio.run(play())
        assert self.progress.done == self.progress.wanted > 0
        return finding


def concurrent(trial: Trial) -> Awaitable[Finding]:
    return measure_concurrent(trial, SystemClock())


def test_prefix_sends_misses_hits_and_repeats() -> None:
    stage = Stage()
    finding = stage.run(measure_prefix)
    prompts = [prompt for _, prompt in stage.log[1:]]  # the first one warms up
    assert len(prompts) == 2 * (1 + 2 + 2)
    assert {len(prompt) for prompt in prompts} == {45}
    miss, first_hit, second_hit, *repeats = prompts[:5]
    assert miss[:40] == first_hit[:40] == second_hit[:40]
    assert len({tuple(prompt[40:]) for prompt in (miss, first_hit, second_hit)}) == 3
    assert repeats == [second_hit, second_hit]
    assert prompts[5][:40] != miss[:40]
    assert [len(measure.values) for measure in finding.measures] == [2, 4, 4]
    assert not stage.plain.asked


def test_prefix_is_compared_with_the_peer_only_if_there_is_one() -> None:
    without = Stage().run(measure_prefix).targets[2]
    assert without.value is None
    peer = SlowPeer()
    stage = Stage(peer=peer)
    beside = stage.run(measure_prefix)
    assert beside.targets[2].met is True
    assert beside.measures[-1].values == (1e9,) * 4
    assert beside.facts["OpenVINO GenAI"] == "a slow peer"
    ours = [prompt for _, prompt in stage.log]
    known = [[prompt] for at, prompt in enumerate(ours) if prompt not in ours[:at]]
    assert [prompts for prompts, _ in peer.asked] == known


def test_quick_runs_judge_nothing() -> None:
    finding = Stage(judged=False).run(measure_prefix)
    assert [target.met for target in finding.targets] == [None, None, None]


def test_conversation_is_the_same_in_both_arms_and_grows_by_the_answers() -> None:
    stage = Stage()
    finding = stage.run(measure_conversation)
    held = [body["messages"] for body in stage.cached.asked]
    calibration = [body["messages"] for body in stage.plain.asked[:2]]
    assert [len(messages) for messages in calibration] == [1, 1]
    assert held == [body["messages"] for body in stage.plain.asked[2:]]
    assert [len(messages) for messages in held] == [2, 4, 6] * 2
    assert [message["role"] for message in held[1]] == ["system", "user", "assistant", "user"]
    assert len(held[0][0]["content"].split()) == 50
    assert len(held[0][1]["content"].split()) == 6
    assert held[1][2]["content"] == "b " * 4
    assert held[0][0] != held[3][0]
    assert [len(measure.values) for measure in finding.measures] == [2, 2]
    # Which arm goes first alternates: cached turns, plain turns; then plain, cached.
    assert [name for name, _ in stage.log[2:]] == ["cached"] * 3 + ["plain"] * 6 + ["cached"] * 3


def test_concurrent_sends_bursts_with_a_shared_beginning() -> None:
    stage = Stage()
    finding = stage.run(concurrent)
    cached = [body["prompt"] for body in stage.cached.asked]
    assert len(cached) == 2 * (5 + 1 + 5)
    cold, primer, warm = cached[:5], cached[5], cached[6:11]
    assert len({tuple(prompt[:20]) for prompt in cold}) == 1
    assert len({tuple(prompt) for prompt in cold}) == 5
    assert {tuple(prompt[:20]) for prompt in warm} == {tuple(primer[:20])} != {tuple(cold[0][:20])}
    assert len(stage.plain.asked) == 5
    assert finding.facts["prompt tokens computed of 115, cold"] == 5 * (23 - 11)


def test_concurrent_gives_the_peer_the_same_warm_bursts() -> None:
    peer = SlowPeer()
    stage = Stage(peer=peer)
    finding = stage.run(concurrent)
    cached = [body["prompt"] for body in stage.cached.asked]
    warm = [([cached[5]], 1), (cached[6:11], 4), ([cached[16]], 1), (cached[17:22], 4)]
    assert peer.asked == warm
    assert finding.targets[1].met is True
    assert finding.measures[-1].values == (1e9, 1e9)


def test_concurrent_refuses_a_server_that_does_less_work() -> None:
    stage = Stage()
    stage.cached.short_by = 1
    with pytest.raises(HotprefixError, match="generated 15 tokens, not 20"):
        stage.run(concurrent)


def test_short_goes_abba_with_the_same_prompts_in_both_arms() -> None:
    stage = Stage()
    finding = stage.run(measure_short)
    names = [name for name, _ in stage.log]
    abba, baab = ["cached", "plain", "plain", "cached"], ["plain", "cached", "cached", "plain"]
    assert names == (abba + baab) * 2
    prompts = [prompt for _, prompt in stage.log]
    assert prompts[0] == prompts[1]
    assert prompts[2] == prompts[3]
    assert prompts[0] != prompts[2]
    assert all(2 <= len(prompt) <= 12 for prompt in prompts)
    assert len(finding.measures[2].values) == 4


def judge(measured: Sequence[Round]) -> Finding:
    async def play(trial: Trial) -> Finding:
        trial.progress.task("short", 1)()
        return short_finding(trial, measured)

    return Stage().run(play)


def rounds(*percents: float) -> list[Round]:
    """Pairs of servers of which the one with a cache takes so many per cent longer, in every quad."""
    return [Round((0.1 * (1 + p / 100),) * 4, (0.1,) * 4) for p in percents]


def test_a_quad_is_two_requests_of_each_arm() -> None:
    assert Round((3.0, 1.0, 2.0, 2.0), (1.0, 1.0, 4.0, 4.0)).overheads == (100.0, -50.0)


def test_pairs_of_servers_cancel_who_was_started_first() -> None:
    finding = judge(rounds(-1.5, 2.5, -1.4, 2.4))
    assert finding.targets[0].value == pytest.approx(0.5)
    assert finding.targets[0].met is True
    assert finding.facts["its 95 % interval"] == "+0.50 to +0.50"
    assert finding.facts["pairs of servers"] == "-1.50, +2.50, -1.40, +2.40"
    worse = judge(rounds(0.9, 2.5, 0.9, 2.5))
    assert worse.targets[0].met is False


def test_one_pair_is_judged_by_its_quads() -> None:
    finding = judge([Round((0.1, 0.1, 0.1, 0.1, 0.3, 0.3), (0.1,) * 6)])
    assert finding.targets[0].value == pytest.approx(0.0)
    assert "median over quads" in finding.about
