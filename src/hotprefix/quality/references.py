"""Logits that are compared with later, kept on disk: those of a few documents can fill a gigabyte."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hotprefix.quality.metrics import Logits


class References:
    """Arrays in a folder, by number."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)
        self._count = 0

    def keep(self, logits: Logits) -> None:
        """The next one."""
        np.save(self._path(self._count), logits, allow_pickle=False)
        self._count += 1

    def get(self, number: int) -> Logits:
        """The one of that number, from 0; the file is read as it is looked at."""
        logits: Logits = np.load(self._path(number), mmap_mode="r", allow_pickle=False)
        return logits

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.npy"
