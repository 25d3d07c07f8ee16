"""The logits behind a prompt's last token, kept so that an exact repeat needs no forward pass."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.ids import BlockKey

Logits = NDArray[np.float32]
"""Shape [vocabulary]."""


class LogitsStore:
    """Least-recently-used store of logits by prompt key, bounded in bytes."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._rows: OrderedDict[BlockKey, Logits] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def bytes(self) -> int:
        """Bytes held now."""
        return self._bytes

    def get(self, key: BlockKey) -> Logits | None:
        """The logits of a prompt, read-only."""
        row = self._rows.get(key)
        if row is not None:
            self._rows.move_to_end(key)
        return row

    def put(self, key: BlockKey, row: Logits) -> None:
        """Keep a copy of `row`; the longest unused rows make room."""
        if key in self._rows:
            self._rows.move_to_end(key)
            return
        if row.nbytes > self.limit_bytes:
            return
        kept = row.astype(np.float32, copy=True)
        kept.flags.writeable = False
        self._rows[key] = kept
        self._bytes += kept.nbytes
        while self._bytes > self.limit_bytes:
            _, old = self._rows.popitem(last=False)
            self._bytes -= old.nbytes
