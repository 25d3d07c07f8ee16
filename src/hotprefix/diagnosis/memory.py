"""The prompts of the recent past, tenant by tenant, and which of them a new one resembles most."""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from hotprefix.diagnosis.alignment import shared_tokens
from hotprefix.diagnosis.pool import SharedPool
from hotprefix.diagnosis.snapshot import BlockBody, PromptSnapshot, SnapshotBlock
from hotprefix.diagnosis.toolset import ToolSet

_BLOCK_OVERHEAD = 320
_SNAPSHOT_OVERHEAD = 4_096
_LEAST_LIKENESS = 32
"""Tokens that two prompts must share somewhere, to be compared at all."""


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """Bounds of one tenant's memory, how many tenants are remembered, and of all that together."""

    snapshots: int = 512
    bytes: int = 32 << 20
    tenants: int = 256
    all_bytes: int = 256 << 20


class SnapshotMemory:
    """Remembers prompts within bounds, least recently useful first out. Used on one thread.

    A tenant's prompts are found by that tenant only. A prompt that an earlier one begins takes its
    place, so a long conversation is remembered once.
    """

    def __init__(self, limits: MemoryLimits | None = None) -> None:
        self._limits = limits or MemoryLimits()
        self._tenants: OrderedDict[str, _TenantMemory] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes that all snapshots take, about."""
        return self._size

    def count(self, tenant: str) -> int:
        """Snapshots of a tenant."""
        memory = self._tenants.get(tenant)
        return len(memory) if memory is not None else 0

    def nearest(self, tenant: str, snapshot: PromptSnapshot) -> PromptSnapshot | None:
        """The tenant's earlier prompt that `snapshot` resembles most, if any does.

        One of the same scene wins over others; then the one that shares most.
        """
        memory = self._tenants.get(tenant)
        if memory is None:
            return None
        self._tenants.move_to_end(tenant)
        return memory.nearest(snapshot)

    def remember(self, tenant: str, snapshot: PromptSnapshot) -> None:
        """Keep a prompt. One that alone is larger than the bound is not kept."""
        memory = self._tenants.get(tenant)
        if memory is None:
            memory = self._tenants[tenant] = _TenantMemory(self._limits)
        self._tenants.move_to_end(tenant)
        before = memory.size
        memory.add(snapshot)
        self._size += memory.size - before
        while len(self._tenants) > self._limits.tenants or (
            len(self._tenants) > 1 and self._size > self._limits.all_bytes
        ):
            self._size -= self._tenants.popitem(last=False)[1].size

    def forget(self, tenant: str) -> None:
        """Drop all of a tenant's prompts."""
        memory = self._tenants.pop(tenant, None)
        if memory is not None:
            self._size -= memory.size


class _TenantMemory:
    """Snapshots by number, rising with time, and for each way to find one the newest number."""

    def __init__(self, limits: MemoryLimits) -> None:
        self._limits = limits
        self._snapshots: OrderedDict[int, PromptSnapshot] = OrderedDict()
        self._next = 0
        self._by_chain: dict[bytes, int] = {}
        self._by_end: dict[bytes, int] = {}
        self._by_sketch: dict[int, int] = {}
        self._by_scene: dict[str, int] = {}
        self._bodies: SharedPool[BlockBody] = SharedPool(_body_size)
        self._toolsets: SharedPool[ToolSet] = SharedPool(lambda tools: tools.size)
        self._overhead = 0

    def __len__(self) -> int:
        return len(self._snapshots)

    @property
    def size(self) -> int:
        return self._overhead + self._bodies.size + self._toolsets.size

    def nearest(self, snapshot: PromptSnapshot) -> PromptSnapshot | None:
        best: tuple[tuple[bool, int, bool, int], int] | None = None
        for number in self._candidates(snapshot):
            other = self._snapshots[number]
            likeness = _likeness(other, snapshot)
            if likeness < _LEAST_LIKENESS:
                continue
            is_same_scene = bool(snapshot.scene) and other.scene == snapshot.scene
            rank = (is_same_scene, likeness, other.model == snapshot.model, number)
            if best is None or rank > best[0]:
                best = rank, number
        if best is None:
            return None
        self._snapshots.move_to_end(best[1])
        return self._snapshots[best[1]]

    def add(self, snapshot: PromptSnapshot) -> None:
        chain = _chain(snapshot)
        snapshot = self._replace_beginnings(snapshot, chain)
        number, self._next = self._next, self._next + 1
        blocks = tuple(_with_body(block, self._bodies) for block in snapshot.blocks)
        tools = self._toolsets.hold(snapshot.tools.digest, snapshot.tools)
        self._snapshots[number] = replace(snapshot, blocks=blocks, tools=tools)
        self._overhead += _overhead(snapshot)
        self._by_chain.update(dict.fromkeys(chain, number))
        self._by_end.update(dict.fromkeys(chain[-1:], number))
        self._by_sketch.update(dict.fromkeys(snapshot.sketch, number))
        if snapshot.scene:
            self._by_scene[snapshot.scene] = number
        while len(self._snapshots) > self._limits.snapshots or self.size > self._limits.bytes:
            self._drop(next(iter(self._snapshots)))

    def _candidates(self, snapshot: PromptSnapshot) -> set[int]:
        found = {self._by_scene[snapshot.scene]} if snapshot.scene in self._by_scene else set()
        for digest in reversed(_chain(snapshot)):
            if digest in self._by_chain:
                found.add(self._by_chain[digest])
                break
        votes = Counter(self._by_sketch[run] for run in snapshot.sketch if run in self._by_sketch)
        found.update(number for number, _ in votes.most_common(2))
        return found

    def _replace_beginnings(self, snapshot: PromptSnapshot, chain: list[bytes]) -> PromptSnapshot:
        """Drop snapshots of the same scene and parameters that this one continues; keep their entries."""
        for digest in chain:
            number = self._by_end.get(digest)
            if number is not None and _is_same_setting(self._snapshots[number], snapshot):
                old = self._snapshots[number]
                snapshot = replace(
                    snapshot,
                    markers=tuple(sorted({*old.markers, *snapshot.markers})),
                    expires={**old.expires, **snapshot.expires},
                )
                self._drop(number)
        return snapshot

    def _drop(self, number: int) -> None:
        snapshot = self._snapshots.pop(number)
        for block in snapshot.blocks:
            self._bodies.release(block.body.digest)
        self._toolsets.release(snapshot.tools.digest)
        self._overhead -= _overhead(snapshot)
        chain = _chain(snapshot)
        _forget(self._by_chain, chain, number)
        _forget(self._by_end, chain[-1:], number)
        _forget(self._by_sketch, snapshot.sketch, number)
        _forget(self._by_scene, (snapshot.scene,), number)


def _chain(snapshot: PromptSnapshot) -> list[bytes]:
    """For each content block: a digest of it and everything before it."""
    chain: list[bytes] = []
    done = b""
    for block in snapshot.blocks[:-1]:
        done = blake2b(done + block.body.digest, digest_size=16).digest()
        chain.append(done)
    return chain


def _likeness(old: PromptSnapshot, new: PromptSnapshot) -> int:
    """About how many tokens two prompts have in common, anywhere."""
    texts = {block.body.text_digest for block in old.blocks if block.body.length}
    blocks = sum(block.body.tokens for block in new.blocks if block.body.text_digest in texts)
    shortest = min(old.tokens, new.tokens)
    runs = 0
    if old.sketch and new.sketch:
        runs = len(set(old.sketch) & set(new.sketch)) * shortest // min(len(old.sketch), len(new.sketch))
        # An estimate, wrong by 7 % as often as not: what was counted goes before it where both are close.
        runs -= runs // 8
    return max(blocks, runs, shared_tokens(old.blocks, new.blocks))


def _is_same_setting(old: PromptSnapshot, new: PromptSnapshot) -> bool:
    return (old.model, old.scene, old.parameters, old.tools.digest) == (
        new.model,
        new.scene,
        new.parameters,
        new.tools.digest,
    )


def _with_body(block: SnapshotBlock, pool: SharedPool[BlockBody]) -> SnapshotBlock:
    body = pool.hold(block.body.digest, block.body)
    return block if body is block.body else replace(block, body=body)


def _body_size(body: BlockBody) -> int:
    return _BLOCK_OVERHEAD + sys.getsizeof(body.text) + sys.getsizeof(body.lead) + len(body.ids)


def _overhead(snapshot: PromptSnapshot) -> int:
    return _SNAPSHOT_OVERHEAD + _BLOCK_OVERHEAD * len(snapshot.blocks)


def _forget(index: dict[Any, int], keys: Iterable[Any], number: int) -> None:
    for key in keys:
        if index.get(key) == number:
            del index[key]
