"""Tiers around the fake model's bytes: real stores and threads, and a codec that keeps slots as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from hotprefix.base.clock import Clock, SystemClock
from hotprefix.pages.codecs.base import Block, BrokenPayload
from hotprefix.tiers.base import BlockStore
from hotprefix.tiers.disk import DiskStore
from hotprefix.tiers.faulty import FaultyStore, Schedule
from hotprefix.tiers.guard import GuardedStore
from hotprefix.tiers.placement import Costs, Placement
from hotprefix.tiers.ram import RamStore
from hotprefix.tiers.stack import StackLimits, TierStack
from hotprefix.tiers.storage import BlockStorage
from tests.engine.fake_model import FakeModel

SCOPE = b"s" * 32


class SlotCodec:
    """The slots in use, byte for byte."""

    name = "slots"
    is_lossless = True

    def __init__(self, block_bytes: int, block_size: int) -> None:
        self.block_bytes = block_bytes
        self._slot = block_bytes // block_size

    def encode(self, block: Block, position: int, tokens: int) -> bytes:
        return position.to_bytes(4, "little") + block[: tokens * self._slot].tobytes()

    def decode(self, payload: bytes, position: int, tokens: int, out: Block) -> None:
        if len(payload) != 4 + tokens * self._slot or payload[:4] != position.to_bytes(4, "little"):
            raise BrokenPayload("of another block")
        out[:] = 0
        out[: tokens * self._slot] = np.frombuffer(payload, np.uint8, offset=4)


@dataclass
class Tiers:
    """Sizes in bytes; a schedule of faults for every store; `folder` makes a disk tier."""

    ram: int = 1 << 20
    folder: Path | None = None
    disk: int = 1 << 20
    faults: Schedule | None = None
    pause: Callable[[], None] = lambda: None
    limits: StackLimits | None = None
    clock: Clock = field(default_factory=SystemClock)
    made: list[BlockStore] = field(default_factory=list)

    def __call__(self, model: FakeModel) -> TierStack:
        """A stack for a world."""
        codec = SlotCodec(model.block_bytes, model.block_size)
        storage = BlockStorage(SCOPE, model.block_bytes, codec)
        placement = Placement(Costs(block_bytes=codec.block_bytes))
        guarded = [GuardedStore(store, self.clock) for store in self._stores()]
        return TierStack(guarded, storage, self.clock, placement, self.limits)

    def _stores(self) -> Sequence[BlockStore]:
        self.made = []
        if self.ram:
            self.made.append(RamStore(self.ram, SCOPE, self.clock))
        if self.folder is not None:
            self.made.append(DiskStore(self.folder, self.disk, SCOPE, self.clock))
        if self.faults is None:
            return self.made
        return [FaultyStore(store, self.faults, self.pause) for store in self.made]
