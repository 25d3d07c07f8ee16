"""One way to use a vendor's caches, played through a trace with the vendor's rules and prices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from hotprefix.base.ids import BlockKey
from hotprefix.profiles.price import Price
from hotprefix.traces.request import TraceRequest


class CacheMode(StrEnum):
    """The caches that vendors have, and none."""

    NONE = "none"
    IMPLICIT = "implicit"
    EXPLICIT = "explicit"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class Strategy:
    """`shared` markers stand where requests part, `has_tail`: one more at the prompt's end. `lifetime` and
    `delay` in seconds: an entry is readable from `delay` after its request on. `read` and `write` are money a
    token."""

    mode: CacheMode
    read: Decimal
    write: Decimal
    minimum: int = 0
    quantum: int = 1
    lifetime: float = 0.0
    shared: int = 0
    has_tail: bool = False
    ttl: str = ""

    @property
    def markers(self) -> int:
        """Markers in a request."""
        return self.shared + self.has_tail if self.mode is CacheMode.EXPLICIT else 0

    @property
    def name(self) -> str:
        """For people."""
        if self.mode is not CacheMode.EXPLICIT:
            return self.mode.value
        where = [f"{self.shared} where requests part"] if self.shared else []
        where += ["1 at the end"] if self.has_tail else []
        return f"explicit, {' and '.join(where)}, {self.ttl}"


@dataclass(slots=True)
class Tokens:
    """Prompt tokens by what they cost, and those of answers."""

    computed: int = 0
    read: int = 0
    written: int = 0
    output: int = 0


class Play:
    """A strategy in the making. Requests come in the order of their times."""

    def __init__(self, strategy: Strategy, block: int, delay: float) -> None:
        self.strategy = strategy
        self.tokens = Tokens()
        self._block = block
        self._delay = delay
        self._entries: dict[BlockKey, tuple[float, float]] = {}
        """When an entry begins to be readable, and when it ends."""

    def serve(self, request: TraceRequest, places: Sequence[int]) -> None:
        """Bill one request; `places` are those of `Sharing.places`."""
        strategy, tokens, total = self.strategy, self.tokens, request.input
        tokens.output += request.output
        if strategy.mode is CacheMode.NONE:
            tokens.computed += total
            return
        marks = self._marks(request, places)
        hit = self._found(request, marks[-1] if marks else 0)
        end = max((min(mark * self._block, total) for mark in marks), default=0)
        read = hit - hit % strategy.quantum
        written = 0
        if strategy.mode is not CacheMode.IMPLICIT:
            written = max(0, end - read) if end >= strategy.minimum else 0
        tokens.read += read
        tokens.written += written
        tokens.computed += total - read - written
        self._keep(request, marks)

    def cost(self, price: Price) -> Decimal:
        """Money for everything so far."""
        tokens, strategy = self.tokens, self.strategy
        return (
            tokens.computed * price.input
            + tokens.read * strategy.read
            + tokens.written * strategy.write
            + tokens.output * price.output
        )

    def _marks(self, request: TraceRequest, places: Sequence[int]) -> list[int]:
        """Numbers of blocks behind which entries are made, ascending. A last block that is not full says
        nothing of what follows in the next turn, so the end is that of the last full one."""
        strategy, count = self.strategy, min(len(request.keys), request.input // self._block)
        if strategy.mode is not CacheMode.EXPLICIT:
            return [count] if count else []
        marks = set(places[: strategy.shared])
        if strategy.has_tail and count:
            marks.add(count)
        return sorted(marks)

    def _found(self, request: TraceRequest, last: int) -> int:
        """Tokens of the longest entry that can be read, which lies at or before the last mark."""
        entries, now, strategy = self._entries, request.at, self.strategy
        for place in range(min(last, len(request.keys)), 0, -1):
            times = entries.get(request.keys[place - 1])
            if times is not None and times[0] <= now <= times[1]:
                found = min(place * self._block, request.input)
                return found if found >= strategy.minimum else 0
        return 0

    def _keep(self, request: TraceRequest, marks: Sequence[int]) -> None:
        """Make or renew entries: an implicit cache keeps every block, the others what is marked."""
        strategy, now = self.strategy, request.at
        kept = range(1, len(request.keys) + 1) if strategy.mode is CacheMode.IMPLICIT else marks
        for place in kept:
            if place * self._block < strategy.minimum and strategy.mode is not CacheMode.IMPLICIT:
                continue
            key = request.keys[place - 1]
            known = self._entries.get(key)
            alive = known is not None and known[1] >= now
            begin = known[0] if alive and known is not None else now + self._delay
            self._entries[key] = (begin, max(now, begin) + strategy.lifetime)
