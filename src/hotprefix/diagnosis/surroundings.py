"""The text around a place in a prompt, as far as it is kept."""

from __future__ import annotations

from collections.abc import Sequence

from hotprefix.diagnosis.snapshot import SnapshotBlock


def context_start(blocks: Sequence[SnapshotBlock], block: int, wanted: int) -> int:
    """The block from which on at least `wanted` characters, if there are so many, stand before `block`."""
    start, length = block, 0
    while start > 0 and length < wanted and blocks[start - 1].body.is_complete:
        start -= 1
        length += len(blocks[start].body.rendered)
    return start


def rendered(blocks: Sequence[SnapshotBlock], last: int, wanted: int) -> str:
    """What the model reads, up to block `last` and `wanted` characters more, and not beyond what is kept."""
    parts: list[str] = []
    behind = 0
    for index, block in enumerate(blocks):
        parts.append(block.body.rendered)
        behind += len(parts[-1]) if index > last else 0
        if behind >= wanted or not block.body.is_complete:
            break
    return "".join(parts)
