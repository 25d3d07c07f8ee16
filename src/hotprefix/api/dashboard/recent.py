"""What happened lately: rows for whoever watches, and prompts for whoever looks closer."""

from __future__ import annotations

import asyncio
import sys
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from hotprefix.base.errors import Overloaded
from hotprefix.base.ids import BlockKey
from hotprefix.diagnosis.snapshot import PromptSnapshot
from hotprefix.ledger.row import LedgerRow
from hotprefix.modes.doctor import Case
from hotprefix.modes.turn import TurnRequest

_BLOCK_OVERHEAD = 320
_Name = TypeVar("_Name")


@dataclass(frozen=True, slots=True)
class RecentLimits:
    """`bytes` bounds the prompts that are kept, about; `backlog` the rows that wait for one listener."""

    requests: int = 1000
    bytes: int = 16 << 20
    listeners: int = 16
    backlog: int = 256
    owners: int = 10_000


@dataclass(frozen=True, slots=True)
class Pair:
    """A prompt and the earlier one that it was compared with; `size` in bytes, about."""

    new: PromptSnapshot
    old: PromptSnapshot
    size: int


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a tree of blocks is; `scene` only where scenes are kept apart."""

    tenant: str
    scene: str = ""


class Listener:
    """Rows for one reader: of `tenant`, or of all if that is None."""

    def __init__(self, tenant: str | None, backlog: int) -> None:
        self._tenant = tenant
        self._waiting: deque[LedgerRow] = deque(maxlen=backlog)
        self._wake = asyncio.Event()
        self._missed = False

    def put(self, row: LedgerRow) -> None:
        """Keep a row for the reader; the oldest goes if the reader is slow."""
        if self._tenant is None or row.tenant == self._tenant:
            self._missed = self._missed or len(self._waiting) == self._waiting.maxlen
            self._waiting.append(row)
            self._wake.set()

    async def take(self, timeout: float) -> tuple[list[LedgerRow], bool]:
        """What has come, waiting up to `timeout` seconds for it; and whether some of it was dropped."""
        if not self._waiting:
            self._wake.clear()
            try:
                async with asyncio.timeout(timeout):
                    await self._wake.wait()
            except TimeoutError:
                return [], False
        rows, missed = list(self._waiting), self._missed
        self._waiting.clear()
        self._missed = False
        return rows, missed


class RecentRequests:
    """A bounded memory, used on the event loop only. Without `words` it keeps no prompt."""

    def __init__(self, limits: RecentLimits | None = None, *, words: bool = True) -> None:
        self._limits = limits or RecentLimits()
        self._words = words
        self._rows: OrderedDict[str, LedgerRow] = OrderedDict()
        self._pairs: OrderedDict[str, Pair] = OrderedDict()
        self._bytes = 0
        self._owners: OrderedDict[BlockKey, Owner] = OrderedDict()
        self._partitions: OrderedDict[str, Owner] = OrderedDict()
        self._listeners: set[Listener] = set()

    def __len__(self) -> int:
        """Requests."""
        return len(self._rows)

    @property
    def bytes(self) -> int:
        """What the kept prompts take, about."""
        return self._bytes

    def add(self, row: LedgerRow, case: Case | None = None) -> None:
        """A request has ended. Takes microseconds: its prompt is referred to, not copied."""
        self._rows[row.request_id] = row
        if len(self._rows) > self._limits.requests:
            self._forget_pair(self._rows.popitem(last=False)[0])
        if case is not None:
            self._learn(case.turn.request)
            if self._words and case.earlier is not None:
                self._keep(row.request_id, case.snapshot, case.earlier)
        for listener in self._listeners:
            listener.put(row)

    def row(self, request_id: str) -> LedgerRow | None:
        """The row of a request, if it is remembered."""
        return self._rows.get(request_id)

    def pair(self, request_id: str) -> Pair | None:
        """The prompts of a request, if they are remembered."""
        return self._pairs.get(request_id)

    def owner(self, root: BlockKey) -> Owner | None:
        """Whose blocks hang from `root`, if a request of theirs was seen."""
        return self._owners.get(root)

    def roots_of(self, tenant: str) -> set[BlockKey]:
        """The roots that are known to be a tenant's."""
        return {root for root, owner in self._owners.items() if owner.tenant == tenant}

    def scene_of(self, partition: str) -> Owner | None:
        """Whose part of the caches has this name; None for a tenant's whole."""
        return self._partitions.get(partition)

    @contextmanager
    def listening(self, tenant: str | None) -> Iterator[Listener]:
        """Hear of every request that ends from now on. Raises `Overloaded` beyond so many listeners."""
        if len(self._listeners) >= self._limits.listeners:
            raise Overloaded(f"{len(self._listeners)} dashboards are open; close one.", retry_after=10)
        listener = Listener(tenant, self._limits.backlog)
        self._listeners.add(listener)
        try:
            yield listener
        finally:
            self._listeners.discard(listener)

    def _learn(self, request: TurnRequest) -> None:
        owner = Owner(request.tenant, request.scene if request.partition else "")
        if request.imprint is not None:
            self._note(self._owners, request.imprint.history.root, owner)
        if request.partition:
            self._note(self._partitions, request.partition, owner)

    def _note(self, names: OrderedDict[_Name, Owner], name: _Name, owner: Owner) -> None:
        names[name] = owner
        names.move_to_end(name)
        if len(names) > self._limits.owners:
            names.popitem(last=False)

    def _keep(self, request_id: str, new: PromptSnapshot, old: PromptSnapshot) -> None:
        pair = Pair(new, old, _size(new) + _size(old))
        self._forget_pair(request_id)
        self._pairs[request_id] = pair
        self._bytes += pair.size
        while self._bytes > self._limits.bytes:
            self._forget_pair(next(iter(self._pairs)))

    def _forget_pair(self, request_id: str) -> None:
        pair = self._pairs.pop(request_id, None)
        if pair is not None:
            self._bytes -= pair.size


def _size(snapshot: PromptSnapshot) -> int:
    """As if nothing of it were shared with others, which most of it is."""
    bodies = [block.body for block in snapshot.blocks]
    words = sum(sys.getsizeof(body.text) + sys.getsizeof(body.lead) + len(body.ids) for body in bodies)
    return words + snapshot.tools.size + _BLOCK_OVERHEAD * len(bodies)
