"""Prompts of known lengths, a clock to turn, and an arena that remembers its pins."""

from __future__ import annotations

from collections.abc import Sequence

from hotprefix.base.clock import ManualClock
from hotprefix.base.ids import BlockKey
from hotprefix.keys.scope import CacheScope
from hotprefix.modes.caching import Caching
from hotprefix.modes.classes import TokenClasses
from hotprefix.modes.entries import EntryBook
from hotprefix.modes.marker import Marker
from hotprefix.modes.turn import Turn, TurnRequest
from hotprefix.profiles.loader import load_profiles
from hotprefix.prompt.spans import BlockSpan, ContentBlock, SpannedPrompt

BLOCK = 32
TAIL = 6
"""Tokens behind the last block: the opening of the answer."""


class Pins:
    """A `Pinner` that holds whatever it is told to, unless `full`, or it is no multiple of a block where
    `only_whole_blocks` are there."""

    def __init__(self) -> None:
        self.held: dict[str, int] = {}
        self.full = False
        self.only_whole_blocks = False

    def root_for(self, tenant: str) -> BlockKey:
        return CacheScope("model", "format", tenant=tenant).root()

    async def pin(self, name: str, tenant: str, token_ids: Sequence[int]) -> int:
        if self.full or (self.only_whole_blocks and len(token_ids) % BLOCK):
            return 0
        self.held[name] = len(token_ids)
        return len(token_ids)

    def unpin(self, name: str) -> None:
        self.held.pop(name, None)


def prompt(*blocks: tuple[str, int]) -> SpannedPrompt:
    """Blocks by name and number of tokens; a name stands for its content."""
    ids: list[int] = []
    spans = []
    for number, (name, length) in enumerate(blocks):
        ids += [hash_of(name) + position for position in range(length)]
        block = ContentBlock(f"messages[{number}].content", "user", name)
        spans.append(BlockSpan(block, len(ids), len(ids)))
    return SpannedPrompt("", tuple(ids + [1] * TAIL), tuple(spans))


def hash_of(name: str) -> int:
    return sum(ord(letter) * 131**place for place, letter in enumerate(name)) % 1_000_003 * 1000


class World:
    """One server's caches under one profile."""

    def __init__(self, profile: str = "dashscope-2026-03", *, limit: int = 100) -> None:
        self.clock = ManualClock(1000.0)
        self.pins = Pins()
        self.book = EntryBook(limit)
        self.caching = Caching(self.book, self.pins, self.clock, BLOCK)
        self.profile = load_profiles().get(profile)

    def request(
        self, blocks: SpannedPrompt, *marked: int | tuple[int, str], tenant: str = "t", session: bool = False
    ) -> TurnRequest:
        default = self.profile.explicit.default_ttl if self.profile.explicit else "5m"
        markers = []
        for mark in marked:
            number, ttl = mark if isinstance(mark, tuple) else (mark, default)
            markers.append(Marker(number, ttl, f"messages[{number}].cache_control"))
        return TurnRequest(tenant, "some-model", self.profile, blocks, tuple(markers), session=session)

    async def ask(
        self,
        blocks: SpannedPrompt,
        *marked: int | tuple[int, str],
        tenant: str = "t",
        session: bool = False,
        reused: int = 0,
    ) -> TokenClasses:
        """A request from its beginning to its end."""
        turn = self.caching.begin(self.request(blocks, *marked, tenant=tenant, session=session))
        return await self.end(turn, reused)

    async def end(self, turn: Turn, reused: int = 0) -> TokenClasses:
        await self.caching.first_output(turn)
        classes = await self.caching.finish(turn, reused, 10)
        assert classes.prompt == len(turn.request.prompt.token_ids)
        return classes
