"""How the modes keep prefixes in the arena, wherever that lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from hotprefix.base.ids import BlockKey


class Pinner(Protocol):
    """Implemented by the engine."""

    def root_for(self, tenant: str) -> BlockKey:
        """The root of a tenant's keys."""
        ...

    async def pin(self, name: str, tenant: str, token_ids: Sequence[int]) -> int:
        """Hold a prefix that has been computed; returns the tokens held, 0 if it can't be."""
        ...

    def unpin(self, name: str) -> None:
        """Let it go."""
        ...
