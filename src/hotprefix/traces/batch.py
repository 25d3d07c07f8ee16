"""Some hundred requests in little memory, as they go from one process to another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotprefix.traces.block_keys import as_keys
from hotprefix.traces.request import TraceRequest


@dataclass(frozen=True, slots=True)
class Batch:
    """Requests in order: time, scope, prompt and answer tokens of each; then by request how many blocks
    there are and are known; then the hashes of all blocks in a row."""

    heads: list[tuple[float, str, int, int]]
    lengths: list[int]
    known: list[int]
    hashes: NDArray[np.uint64]

    def requests(self) -> Iterator[TraceRequest]:
        """The requests one by one."""
        rows = as_keys(self.hashes, self.lengths)
        for (at, scope, prompt, answer), keys, known in zip(self.heads, rows, self.known, strict=True):
            yield TraceRequest(at, scope, keys, prompt, answer, known)
