"""What the two threads of a stack do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.ids import BlockKey
from hotprefix.tiers.facts import BlockFacts
from hotprefix.tiers.storage import Fetched


@dataclass(frozen=True, slots=True)
class Store:
    """Write a block."""

    write: Callable[[Store], None]
    cancelled: Callable[[Store], None]
    key: BlockKey
    position: int
    tokens: int
    data: NDArray[np.uint8]
    facts: BlockFacts

    def run(self) -> None:
        self.write(self)

    def cancel(self) -> None:
        self.cancelled(self)


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read a run and hand it over: nothing if anything is wrong, or if it is `is_wanted` no longer."""

    read: Callable[[Sequence[BlockKey]], list[Fetched]]
    keys: Sequence[BlockKey]
    done: Callable[[list[Fetched]], None]
    is_wanted: Callable[[], bool]

    def run(self) -> None:
        run: list[Fetched] = []
        try:
            if self.is_wanted():
                run = self.read(self.keys)
        finally:
            self.done(run)

    def cancel(self) -> None:
        self.done([])


@dataclass(frozen=True, slots=True)
class Act:
    """Anything that may as well not happen."""

    act: Callable[[], object]

    def run(self) -> None:
        self.act()

    def cancel(self) -> None:
        """Nobody waits for it."""
