"""The store against a model of it: whatever is done in whatever order, restarts included."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hotprefix.base.clock import ManualClock
from hotprefix.sessions.limits import StoreLimits
from hotprefix.sessions.response import StoredResponse, Tombstone
from hotprefix.sessions.store import SESSION_FILE, ResponseStore
from tests.sessions.support import turn

ROWS = 4
LIFE = 100.0
TENANTS = ("a", "b")
NAMES = st.integers(0, 30).map(lambda number: f"r{number}")


class StoreMachine(RuleBasedStateMachine):
    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.clock = ManualClock(1000.0)
        self.store = self.new_store()
        self.made = 0
        self.kept: dict[tuple[str, str], dict[str, Any]] = {}
        self.buried: set[tuple[str, str]] = set()

    def new_store(self) -> ResponseStore:
        path = Path(self.folder.name) / SESSION_FILE
        return ResponseStore(path, self.clock, StoreLimits(tenant_rows=ROWS))

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    @rule(tenant=st.sampled_from(TENANTS), previous=NAMES)
    def save(self, tenant: str, previous: str) -> None:
        self.clock.advance(1)
        name = f"r{self.made}"
        self.made += 1
        before = self.store.load(tenant, previous)
        parent = before if isinstance(before, StoredResponse) else None
        self.use(tenant, [previous] if parent else [])
        self.store.save(turn(name, tenant, parent, retention=LIFE))
        self.expire()
        self.kept[tenant, name] = {
            "used": self.clock.now(),
            "depth": 1 if parent is None else parent.depth + 1,
            "previous": None if parent is None else previous,
        }
        mine = [key for key in self.kept if key[0] == tenant and key[1] != name]
        if len(mine) >= ROWS:
            oldest = min(mine, key=lambda key: (self.kept[key]["used"], -self.kept[key]["depth"]))
            del self.kept[oldest]
            self.buried.add(oldest)

    @rule(tenant=st.sampled_from(TENANTS), name=NAMES)
    def load(self, tenant: str, name: str) -> None:
        self.clock.advance(1)
        self.expire()
        found = self.store.load(tenant, name)
        if (tenant, name) in self.kept:
            assert isinstance(found, StoredResponse)
            assert found.document["output"] == [{"type": "message", "text": f"answer of {name}"}]
            self.use(tenant, [name])
        elif (tenant, name) in self.buried:
            assert isinstance(found, Tombstone)
        else:
            assert found is None

    @rule(tenant=st.sampled_from(TENANTS), name=NAMES)
    def chain(self, tenant: str, name: str) -> None:
        self.clock.advance(1)
        self.expire()
        expected: list[str] = []
        at: str | None = name
        while at is not None and (tenant, at) in self.kept:
            expected.insert(0, at)
            at = self.kept[tenant, at]["previous"]
        chain = self.store.chain(tenant, name)
        if at is None:
            assert [one.response_id for one in chain.responses] == expected
            assert [one.depth for one in chain.responses] == list(range(1, len(expected) + 1))
            self.use(tenant, expected)
        else:
            assert chain.responses == ()
            assert chain.missing == at
            assert (chain.buried is not None) == ((tenant, at) in self.buried)

    @rule(tenant=st.sampled_from(TENANTS), name=NAMES)
    def delete(self, tenant: str, name: str) -> None:
        self.expire()
        assert self.store.delete(tenant, name) == (self.kept.pop((tenant, name), None) is not None)

    @rule(seconds=st.sampled_from([1.0, 40.0, 101.0]))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)
        self.expire()

    @rule()
    def purge(self) -> None:
        self.expire()
        self.store.purge()
        assert self.store.count()[0] == len(self.kept)

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = self.new_store()

    @invariant()
    def holdings_add_up(self) -> None:
        if not hasattr(self, "store"):
            return
        rows, size = self.store.count()
        parts = [self.store.count(tenant) for tenant in TENANTS]
        assert (rows, size) == (sum(part[0] for part in parts), sum(part[1] for part in parts))
        assert all(part[0] <= ROWS for part in parts)

    def use(self, tenant: str, names: list[str]) -> None:
        for name in names:
            self.kept[tenant, name]["used"] = self.clock.now()

    def expire(self) -> None:
        for key in [key for key, one in self.kept.items() if one["used"] + LIFE <= self.clock.now()]:
            del self.kept[key]
            self.buried.add(key)


StoreMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStore = pytest.mark.timeout(120)(StoreMachine.TestCase)
