"""Any sequence of verbs, against a dictionary: never a wrong byte, never a record too many."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from hotprefix.base.clock import ManualClock
from hotprefix.tiers.base import BlockStore, Record
from hotprefix.tiers.cipher import Cipher
from hotprefix.tiers.disk import DiskStore
from hotprefix.tiers.ram import RamStore
from hotprefix.tiers.redis import RedisStore
from tests.tiers.conftest import RedisServer
from tests.tiers.records import SECRET, key_of, record

NUMBERS = range(12)
RETAINED = range(2)
"""Those that may be retained: together they are less than a tier keeps for such."""
numbers = st.sampled_from(NUMBERS)
sizes = st.integers(0, 5000)


class StoreMachine(RuleBasedStateMachine):
    """`twin` holds what was put last and not deleted; the store may have less, if it said so."""

    store: BlockStore

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(1000.0)
        self.scope = os.urandom(32)
        self.twin: dict[int, Record] = {}
        self.until: dict[int, float] = {}
        self.version = 0
        self.dropped = 0

    def open_store(self, limit: int) -> BlockStore:
        raise NotImplementedError

    @initialize(limit=st.sampled_from((40_000, 60_000, 1_000_000)))
    def open_first(self, limit: int) -> None:
        self.limit = limit
        self.store = self.open_store(limit)

    @rule(number=numbers, size=sizes)
    def put(self, number: int, size: int) -> None:
        self.version += 1
        self.clock.advance(1)
        one = record(number, size, scope=self.scope, version=self.version)
        self.store.put(one)
        self.twin[number] = one
        self.until.pop(number, None)

    @rule(asked=st.lists(numbers, max_size=6))
    def get(self, asked: list[int]) -> None:
        self.clock.advance(1)
        here = self.store.contains([key_of(number) for number in asked])
        got = self.store.get([key_of(number) for number in asked])
        for number, is_here, found in zip(asked, here, got, strict=True):
            assert is_here == (found is not None)
            assert found is None or found == self.twin[number]

    @rule(asked=st.lists(numbers, max_size=3))
    def delete(self, asked: list[int]) -> None:
        self.store.delete([key_of(number) for number in asked])
        for number in asked:
            self.twin.pop(number, None)
            self.until.pop(number, None)

    @rule(number=st.sampled_from(RETAINED), seconds=st.sampled_from((5, 1000)))
    def retain(self, number: int, seconds: float) -> None:
        until = self.clock.wall() + seconds
        if self.store.contains([key_of(number)]) == [True]:
            self.until[number] = until
        self.store.retain([key_of(number)], until)

    @invariant()
    def accounts_are_right(self) -> None:
        if not hasattr(self, "store"):
            return
        stats = self.store.stats()
        here = [
            n
            for n, has in zip(NUMBERS, self.store.contains([key_of(n) for n in NUMBERS]), strict=True)
            if has
        ]
        assert stats.bytes <= stats.limit == self.limit
        assert stats.damaged == 0
        assert set(here) <= set(self.twin)
        assert stats.records == len(here)
        if not self.dropped + stats.dropped:
            assert set(here) == set(self.twin)
        for number, until in self.until.items():
            assert number in here or until <= self.clock.wall()

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.delete([key_of(number) for number in NUMBERS])
            assert self.store.stats().records == 0
            self.store.close()


class RamMachine(StoreMachine):
    def open_store(self, limit: int) -> BlockStore:
        return RamStore(limit, self.scope, self.clock)


class LastingMachine(StoreMachine):
    @rule()
    def reopen(self) -> None:
        if not hasattr(self, "store"):
            return
        keys = [key_of(number) for number in NUMBERS]
        before = self.store.get(keys)
        self.dropped += self.store.stats().dropped
        self.store.close()
        self.until.clear()
        self.store = self.open_store(self.limit)
        assert self.store.get(keys) == before


class DiskMachine(LastingMachine):
    cipher: Cipher | None = None

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())

    def open_store(self, limit: int) -> BlockStore:
        return DiskStore(self.folder, limit, self.scope, self.clock, self.cipher)

    @invariant()
    def folder_is_within_the_limit(self) -> None:
        sizes = [path.stat().st_size for path in self.folder.glob("*.kv")]
        if sizes:
            assert sum(sizes) == self.store.stats().bytes

    def teardown(self) -> None:
        super().teardown()
        shutil.rmtree(self.folder)


class EncryptedMachine(DiskMachine):
    cipher = Cipher(SECRET)


@pytest.mark.parametrize("machine", [RamMachine, DiskMachine, EncryptedMachine])
def test_any_sequence(machine: type[StoreMachine]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=25, stateful_step_count=40, deadline=None)
    )


def test_any_sequence_in_redis(redis_server: RedisServer) -> None:
    class RedisMachine(LastingMachine):
        def open_store(self, limit: int) -> BlockStore:
            store = RedisStore(redis_server.url, limit, self.scope, self.clock, timeout=30)
            store.retain([key_of(number) for number in RETAINED], 0)
            store.delete([key_of(99)])  # the server tells what is there
            return store

    run_state_machine_as_test(
        RedisMachine, settings=settings(max_examples=15, stateful_step_count=30, deadline=None)
    )
