"""What a tier holds and what happened to it."""

from __future__ import annotations

from dataclasses import dataclass

_ENOUGH = 1 << 20


@dataclass(frozen=True, slots=True)
class TierStats:
    """Contents now (`records`, `bytes`, `limit`), and counters since the start.

    `hits`, `misses`: keys asked for; `skipped`: calls not made while the breaker `is_open`; bytes read
    and written are payloads; seconds are those of calls that moved some.
    """

    name: str
    records: int
    bytes: int
    limit: int
    dropped: int
    damaged: int
    hits: int
    misses: int
    errors: int
    skipped: int
    read_bytes: int
    read_seconds: float
    written_records: int
    written_bytes: int
    write_seconds: float
    is_open: bool
    last_error: str


def bandwidth(size: int, seconds: float) -> float | None:
    """Bytes a second; None if too few were moved to tell."""
    return size / seconds if size >= _ENOUGH and seconds > 0 else None
