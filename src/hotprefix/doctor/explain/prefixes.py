"""Which prefixes were there before: a cache that forgets nothing, within bounds."""

from __future__ import annotations

from collections.abc import Sequence

from hotprefix.base.ids import BlockKey

_LIMIT = 2_000_000
"""Keys that are kept: at 16 tokens a block, of 32 million different tokens."""


class PrefixSet:
    """Keys of full blocks, of which each names all tokens before it too. The oldest of more than `limit`
    keys are forgotten: two tables take turns."""

    def __init__(self, limit: int = _LIMIT) -> None:
        self._half = max(1, limit // 2)
        self._newer: set[int] = set()
        self._older: set[int] = set()

    def known(self, keys: Sequence[BlockKey]) -> int:
        """How many leading blocks were there before."""
        for number, key in enumerate(keys):
            short = _short(key)
            if short not in self._newer and short not in self._older:
                return number
        return len(keys)

    def add(self, keys: Sequence[BlockKey]) -> None:
        """Remember a prompt."""
        for key in keys:
            self._newer.add(_short(key))
        if len(self._newer) >= self._half:
            self._older, self._newer = self._newer, set()


def _short(key: BlockKey) -> int:
    """Half of a digest is enough where nobody wants to deceive himself."""
    return int.from_bytes(key[:8], "little")
