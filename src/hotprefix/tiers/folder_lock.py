"""One owner for a folder: a lock that the kernel gives back however its process ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from hotprefix.tiers.base import StoreError


class FolderInUse(StoreError):
    """Another process writes to the folder."""


class FolderLock:
    """Held from construction to `release`. Makes the folder if it is missing.

    Raises `FolderInUse`, or `StoreError` if the folder can't be made or written to.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"{folder} can't be used as a disk tier: {error.strerror}") from error
        self._file = os.fdopen(handle, "r+", encoding="ascii", errors="replace")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = self._file.read(32).strip()
            self._file.close()
            raise FolderInUse(
                f"{folder} is in use by another server{f' (process {owner})' if owner else ''}. "
                "Give each server a state folder of its own, or stop the other one."
            ) from error
        self._file.truncate(0)
        self._file.write(f"{os.getpid()}\n")
        self._file.flush()

    def release(self) -> None:
        """Let others have it."""
        self._file.close()
