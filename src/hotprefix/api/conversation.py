"""A conversation as the caches and the chat template see it, whatever dialect it came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hotprefix.modes.marker import Marker
from hotprefix.prompt.spans import ContentBlock


@dataclass(slots=True)
class Conversation:
    """Built message by message. `blocks[i]` are the content blocks of `messages[i]`, and their texts
    put together are its content. Markers name blocks by their number over all messages. If it
    `is_begun`, the last message is the beginning of the answer."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    blocks: list[list[ContentBlock]] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    is_begun: bool = False
    _count: int = field(init=False)

    def __post_init__(self) -> None:
        self._count = sum(map(len, self.blocks))

    def add(self, message: dict[str, Any], blocks: Sequence[tuple[ContentBlock, str | None]]) -> None:
        """A message, and for each of its blocks the TTL name of the marker at its end, if any."""
        self.messages.append(message)
        self.blocks.append([block for block, _ in blocks])
        for number, (block, ttl) in enumerate(blocks, start=self._count):
            if ttl is not None:
                self.markers.append(Marker(number, ttl, f"{block.path}.cache_control"))
        self._count += len(blocks)
