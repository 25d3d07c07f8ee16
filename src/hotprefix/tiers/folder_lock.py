"""One owner for a folder: a lock that the kernel gives back however its process ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
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
        self._handle = handle
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            owner = os.pread(handle, 32, 0).decode("ascii", "replace").strip()
            os.close(handle)
            raise FolderInUse(
                f"{folder} is in use by another server{f' (process {owner})' if owner else ''}. "
                "Give each server a state folder of its own, or stop the other one."
            ) from error
        except OSError as error:
            os.close(handle)
            raise StoreError(
                f"{folder} can't be locked: {error.strerror}. A disk tier needs a file system with locks, "
                "such as that of a local disk."
            ) from error
        with suppress(OSError):  # it only helps people, and a full disk has no room for it
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let others have it."""
        os.close(self._handle)
