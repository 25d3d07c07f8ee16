"""Which servers a run starts, and whom it asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from hotprefix.base.clock import Clock, SystemClock
from hotprefix.bench import run
from hotprefix.bench.client import BenchClient
from hotprefix.bench.run import BenchSettings, Scenario, measure
from hotprefix.bench.server import RunningServer
from tests.bench.answering import Answering, client_of
from tests.bench.test_scenarios import SIZES, Counting


class Machines:
    """Servers that are started, by name in the order of their start, and what they were asked."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.running: dict[str, Answering] = {}
        self.log: list[tuple[str, Any]] = []

    @contextmanager
    def serving(self, arguments: Sequence[str], log: Path, clock: Clock) -> Iterator[RunningServer]:
        name = "plain" if "--no-cache" in arguments else "cached"
        assert log.name == f"server-{name}.log"
        self.started.append(name)
        self.running[name] = Answering(name, self.log)
        yield RunningServer(name, 1)
        del self.running[name]

    def connect(self, url: str, clock: Clock) -> AbstractAsyncContextManager[BenchClient]:
        return client_of(self.running[url], clock)


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Machines:
    made = Machines()
    monkeypatch.setattr(run, "serving", made.serving)
    monkeypatch.setattr(run, "connect", made.connect)
    monkeypatch.setattr(BenchSettings, "sizes", SIZES)
    return made


def settings(tmp_path: Path, *scenarios: Scenario, **more: Any) -> BenchSettings:
    return BenchSettings(scenarios, "a model", tmp_path, quick=False, peer=False, seed=1, **more)


def found(settings: BenchSettings, env: Mapping[str, str] | None = None) -> list[str]:
    progress = Counting()
    findings = list(measure(settings, progress, SystemClock(), env or {}))
    assert progress.done == progress.wanted
    return [finding.name for finding in findings]


def test_short_requests_go_to_fresh_pairs_started_in_either_order(machines: Machines, tmp_path: Path) -> None:
    assert found(settings(tmp_path, Scenario.SHORT)) == ["short"]
    assert machines.started == ["plain", "cached", "cached", "plain"] * 2
    assert not machines.running
    # One that warms up, then one quad, for each pair.
    assert [name for name, _ in machines.log].count("cached") == 4 * (1 + 2)


def test_other_scenarios_share_a_pair(machines: Machines, tmp_path: Path) -> None:
    names = found(settings(tmp_path, Scenario.SHORT, Scenario.PREFIX, Scenario.CONVERSATION))
    assert names == ["prefix", "conversation", "short"]
    assert machines.started == ["cached", "plain"] + ["plain", "cached", "cached", "plain"] * 2


def test_servers_that_run_already_are_asked_as_they_are(machines: Machines, tmp_path: Path) -> None:
    for name in ("cached", "plain"):
        machines.running[name] = Answering(name, machines.log)
    assert found(settings(tmp_path, Scenario.SHORT, urls=("cached", "plain"))) == ["short"]
    assert not machines.started
    assert [name for name, _ in machines.log].count("plain") == 1 + 8
