"""Small file chores: digests, locks between processes, sizes."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(parts: Iterable[tuple[str, str]]) -> str:
    """One digest over labelled texts; the framing keeps different lists apart."""
    digest = hashlib.sha256()
    for label, value in parts:
        for text in (label, value):
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little") + raw)
    return digest.hexdigest()


def folder_size(folder: Path) -> int:
    """Bytes of all files below `folder`; 0 if it does not exist."""
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold an exclusive lock that other processes and threads respect; waits for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        # Closing the file gives the lock back.
        yield
