"""How much goes to the arena and to the tiers behind it, and in which form."""

from __future__ import annotations

from dataclasses import dataclass

from hotprefix.tune.budget import Budget
from hotprefix.tune.candidate import Candidate
from hotprefix.tune.decision import GIB, MIB, Basis, Decision, gib, written_size
from hotprefix.tune.machine import Disk, Redis
from hotprefix.tune.quality_notes import QualityNotes
from hotprefix.tune.wish import Goal, Need

_SHARE = {Goal.LATENCY: 1.0, Goal.BALANCED: 0.6, Goal.MEMORY: 0.0}
"""Of the memory that is free for KV, as far as the requests don't need more."""
_SPARE = 1.25
"""Room for prefixes that no running request uses."""
_LEAST_ARENA = 64 * MIB
_DISK_SHARE = 4
_DISK_TIMES = 16
"""A disk tier takes a quarter of what is free, and at most so many times the arena."""
_LEAST_DISK = GIB
_WORTH = 2.0
"""A tier has to read so many times faster than the model computes."""
_CODEC_BYTES = {"raw": 1.0, "int8": 0.52}
"""Against 16 bits: 8.25 bits an element with its scales."""


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes of arena and RAM tier; all decisions, in the order of a config."""

    arena: int
    ram: int
    codec: str
    decisions: tuple[Decision, ...]


class StorageRule:
    """Fills arena, RAM, disk and Redis for one precision.

    `least` bytes go to the arena at any rate, as far as there are so many.
    """

    def __init__(
        self,
        chosen: Candidate,
        budget: Budget,
        need: Need,
        goal: Goal,
        notes: QualityNotes,
        least: int = 0,
    ) -> None:
        self._chosen = chosen
        self._budget = budget
        self._need = need
        self._goal = goal
        self._notes = notes
        self._least = max(_LEAST_ARENA, least)

    def fill(self, disk: Disk, redis: Redis | None) -> Storage:
        codec, why, basis = self._codec()
        arena, ram, sized = self._memory(codec)
        tiers = [self._disk(disk, arena, codec), self._redis(redis, codec)]
        found = [*sized, *(tier for tier in tiers if tier is not None)]
        if any(decision.key in ("kv-ram", "kv-disk", "kv-redis") for decision in found):
            found.append(Decision("kv-codec", codec, why, basis))
        return Storage(arena, ram, codec, tuple(found))

    def _codec(self) -> tuple[str, str, Basis]:
        if not self._chosen.exact:
            why = f"the arena is in {self._chosen.precision} already: codecs start from 16 bits"
            return "raw", why, Basis.MACHINE
        if self._goal is Goal.LATENCY:
            return "raw", "nothing to decode on the way back, and exact", Basis.ASKED
        note = self._notes.codec("int8")
        if note is not None and not note.is_good:
            return "raw", f"the quality card warns of int8: {note}", Basis.MEASURED
        if note is not None:
            return "int8", f"about half the bytes of 16 bits; quality card: {note}", Basis.MEASURED
        return "int8", "about half the bytes of 16 bits", Basis.ASKED

    def _memory(self, codec: str) -> tuple[int, int, list[Decision]]:
        wanted = int(self._need.tokens * self._chosen.bytes_per_token * _SPARE)
        whole = max(wanted, self._least, int(_SHARE[self._goal] * self._budget.kv))
        whole = min(whole, self._budget.kv)
        arena, ram = whole, 0
        if codec != "raw" and self._goal is Goal.BALANCED:
            # Behind the arena a prefix takes half the memory that it takes inside.
            arena = min(whole, max(wanted, self._least, whole // 2))
            ram = whole - arena if whole - arena >= _LEAST_ARENA else 0
        tokens = int(arena / self._chosen.bytes_per_token)
        why = (
            f"{tokens:,} tokens of {self._chosen.bytes_per_token:,.0f} bytes; the requests need "
            f"{self._need.tokens:,}, and {gib(self._budget.kv)} are free for keys and values"
        )
        decisions = [Decision("kv-arena", written_size(arena), why, Basis.MACHINE)]
        if ram:
            kept = int(ram / (self._chosen.bytes_per_token * _CODEC_BYTES[codec]))
            why = f"about {kept:,} more tokens of prefixes that leave the arena, in {codec}"
            decisions.append(Decision("kv-ram", written_size(ram), why, Basis.MACHINE))
        return arena, ram, decisions

    def _disk(self, disk: Disk, arena: int, codec: str) -> Decision | None:
        size = min(disk.free // _DISK_SHARE, _DISK_TIMES * arena) // GIB * GIB
        if size < _LEAST_DISK:
            return None
        told = f"{gib(disk.free)} free in {disk.folder}"
        worth = self._worth(disk.read, codec)
        if worth is None:
            return Decision("kv-disk", written_size(size), f"{told}; speed not measured", Basis.MACHINE)
        if worth < _WORTH:
            return None
        bound = " at most" if disk.cached else ""
        why = f"{told}; reading a prefix is{bound} {worth:,.0f} times faster than computing it"
        return Decision("kv-disk", written_size(size), why, Basis.MEASURED)

    def _redis(self, redis: Redis | None, codec: str) -> Decision | None:
        if redis is None:
            return None
        size = (redis.room or GIB) // 2
        worth = self._worth(redis.read, codec)
        if size < MIB or (worth is not None and worth < _WORTH):
            return None
        told = f"half of the {gib(redis.room)} that it may hold" if redis.room else "it tells no limit"
        faster = "" if worth is None else f"; reading is {worth:,.0f} times faster than computing"
        return Decision(
            "kv-redis", written_size(size), told + faster, Basis.MEASURED if worth else Basis.MACHINE
        )

    def _worth(self, read: float | None, codec: str) -> float | None:
        """How many times faster a prefix is read than computed; None if either was not measured."""
        if read is None or self._chosen.prefill is None:
            return None
        return read / (self._chosen.bytes_per_token * _CODEC_BYTES[codec] * self._chosen.prefill)
