"""Between the prefix tree and the tiers: what leaves the arena goes to them, and comes back when wanted."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.clock import Clock
from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.cache.pins import PinBoard
from hotprefix.cache.prefix import PrefixCache
from hotprefix.keys.chain import TOKEN_BYTES, TokenHistory
from hotprefix.kv.node import Node
from hotprefix.tiers.facts import BlockFacts, Reason

if TYPE_CHECKING:
    from hotprefix.tiers.stack import Fetched, TierStack

PIECE = 16
"""Blocks fetched at once: bounds the memory of a restore, and lets reading run beside writing."""
PATIENCE = 2.0
"""Seconds without a piece after which a request computes instead of waiting."""
PIN_SECONDS = 3600.0
"""How often the tiers are told that a block is pinned: a fraction of the time that they keep it for that."""
_LEAST = 2
"""Missing blocks for which the tiers are asked: fewer are computed as fast."""
_QUEUE = 16_384
"""Blocks that wait to be saved."""
_LOOKS = 8
"""Blocks looked at for one that is saved: most may be in the tiers already."""


Post = Callable[[Callable[[], None]], object]


def _nowhere(call: Callable[[], None]) -> None:
    raise LogicError("nobody runs what the tiers bring")


class BlockBytes(Protocol):
    """The bytes of blocks, as the arena keeps them."""

    def snapshot(self, block: BlockId) -> NDArray[np.uint8]: ...

    def write(self, block: BlockId, data: NDArray[np.uint8]) -> None: ...


class _Flight:
    """One prefix on its way back: the keys still to fetch and who waits for it."""

    __slots__ = ("at", "first", "history", "is_over", "keys", "since", "waiting")

    def __init__(self, history: TokenHistory, first: int, keys: Sequence[BlockKey], now: float) -> None:
        self.history = history
        self.first = first
        self.keys = keys
        self.at = 0
        self.since = now
        self.waiting: list[tuple[TokenHistory, Callable[[], None]]] = []
        self.is_over = False


class Tiering:
    """Used on the engine's thread only. `connect` tells how other threads have a call run there.

    Blocks go out when they make room, and earlier: those that were used again or pinned within a
    few steps, all others once the engine has nothing else to do. So what a crash can take is
    what was computed in the last moments.
    """

    def __init__(
        self,
        cache: PrefixCache,
        arena: BlockBytes,
        stack: TierStack,
        clock: Clock,
        pins: PinBoard | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self._cache = cache
        self._arena = arena
        self._stack = stack
        self._clock = clock
        self._post: Post = _nowhere
        self._pins = pins
        self._patience = patience
        self._flights: dict[BlockKey, _Flight] = {}
        self._urgent: deque[Node] = deque(maxlen=_QUEUE)
        self._later: deque[Node] = deque(maxlen=_QUEUE)
        self._pinned_at: OrderedDict[BlockKey, float] = OrderedDict()
        self._adopting = False
        self._is_waiting_for_room = False
        self._reason = Reason.IDLE
        self.restored_tokens = 0
        cache.on_evicted.append(self._evicted)
        cache.on_sealed.append(self._sealed)

    def connect(self, post: Post) -> None:
        """From now on, `post` has a call run on the engine's thread."""
        self._post = post

    @property
    def stack(self) -> TierStack:
        """The tiers."""
        return self._stack

    def restore(self, history: TokenHistory, then: Callable[[], None]) -> bool:
        """Fetch what the tiers have of `history` behind what is in the arena.

        True: `then` will be called, once. False: there is nothing to wait for.
        """
        keys = list(history.keys(len(history) // self._cache.block_size))
        first = len(self._cache.known(history))
        if len(history) % self._cache.block_size:
            keys.append(history.key_at(len(history)))
        missing = keys[first:]
        if len(missing) < _LEAST or not self._stack.promising(missing[:1]):
            return False
        flight = self._flights.get(missing[0])
        if flight is None:
            flight = _Flight(history, first, missing, self._clock.now())
            self._flights[missing[0]] = flight
            self._next_piece(flight)
        flight.waiting.append((history, then))
        return True

    def wait_at_most(self) -> float | None:
        """Seconds until somebody's patience ends; None if nobody waits."""
        if not self._flights:
            return None
        oldest = min(flight.since for flight in self._flights.values())
        return max(0.0, oldest + self._patience - self._clock.now())

    def expire(self) -> None:
        """Let those go on whose patience has ended."""
        if self._flights:
            limit = self._clock.now() - self._patience
            for flight in [one for one in self._flights.values() if one.since <= limit]:
                self._land(flight)

    def reused(self, nodes: Sequence[Node]) -> None:
        """These blocks were used again: the first time makes them worth keeping."""
        self._urgent.extend(node for node in nodes if node.hits == 1)

    def pinned(self, history: TokenHistory, until: float) -> None:
        """This prefix is kept on purpose, for now until then (wall clock, Unix seconds)."""
        path = self._cache.whole_path(history) or []
        fresh = [node for node in path if self._is_newly_pinned(node.key)]
        self._urgent.extend(fresh)
        if fresh:
            self._stack.retain([node.key for node in fresh], until)

    def save_urgent(self, count: int) -> None:
        """Save at most `count` blocks that are worth it; for every step."""
        self._save(self._urgent, count)

    def save_some(self, count: int) -> bool:
        """Save at most `count` blocks; whether to go on. For idle times.

        Where the tiers are behind, a call is posted once they are not.
        """
        has_more = self._save(self._urgent, count) or self._save(self._later, count)
        if has_more and not self._stack.has_room:
            self._wait_for_room()
            return False
        return has_more

    def close(self, timeout: float) -> None:
        """Save what is in the arena and not yet outside, as far as `timeout` seconds allow."""
        for flight in list(self._flights.values()):
            self._land(flight)
        until = self._clock.now() + timeout
        self._reason = Reason.SHUTDOWN
        while self._save(self._urgent, PIECE) or self._save(self._later, PIECE):
            if (left := until - self._clock.now()) <= 0 or not self._stack.flush(left):
                break
        self._stack.close(max(0.0, until - self._clock.now()))

    def _next_piece(self, flight: _Flight) -> None:
        piece = flight.keys[flight.at : flight.at + PIECE]

        def arrived(fetched: list[Fetched]) -> None:
            self._post(lambda: self._arrived(flight, fetched))

        # Reading for those who have lost patience would keep the others waiting until they lose it too.
        self._stack.fetch(piece, arrived, lambda: not flight.is_over)

    def _arrived(self, flight: _Flight, fetched: list[Fetched]) -> None:
        if flight.is_over:
            return
        first = flight.first + flight.at
        is_whole = len(fetched) == len(flight.keys[flight.at : flight.at + PIECE])
        flight.at += len(fetched)
        flight.since = self._clock.now()
        has_more = is_whole and flight.at < len(flight.keys)
        if has_more:
            self._next_piece(flight)  # read beside the copying here
        if not self._adopt(flight.history, first, fetched) or not has_more:
            self._land(flight)

    def _adopt(self, history: TokenHistory, first: int, fetched: Sequence[Fetched]) -> bool:
        """Put blocks into the arena and the tree; whether all could be."""
        size = self._cache.block_size
        nodes = self._cache.known(history)
        if len(nodes) < first:
            return False  # evicted meanwhile
        lease = self._cache.leases.issue(nodes[:first])
        self._adopting = True
        try:
            for index, block in enumerate(fetched, first):
                length = min((index + 1) * size, len(history))
                if block.position != index * size or block.tokens != length - index * size:
                    return False
                if not self._cache.adopt(history, length, lease, partial(self._fill, block.data)):
                    return False
                self.restored_tokens += block.tokens
        finally:
            self._adopting = False
            lease.release()
        return True

    def _fill(self, data: NDArray[np.uint8], block: BlockId) -> None:
        self._arena.write(block, data)

    def _land(self, flight: _Flight) -> None:
        flight.is_over = True
        del self._flights[flight.keys[0]]
        for history, then in flight.waiting:
            # Others share the beginning only: the rest of theirs may be out there too.
            is_other = history is not flight.history and len(self._cache.known(history)) > flight.first
            if not is_other or not self.restore(history, then):
                then()

    def _is_newly_pinned(self, key: BlockKey) -> bool:
        """Every hit pins its prefix again; the tiers need to hear of it once in a while."""
        now = self._clock.now()
        if now - self._pinned_at.get(key, -PIN_SECONDS) < PIN_SECONDS:
            return False
        self._pinned_at[key] = now
        self._pinned_at.move_to_end(key)
        if len(self._pinned_at) > _QUEUE:
            self._pinned_at.popitem(last=False)
        return True

    def _sealed(self, node: Node) -> None:
        if not self._adopting:
            self._later.append(node)

    def _evicted(self, node: Node) -> None:
        self._store(node, Reason.EVICTED)

    def _save(self, queue: deque[Node], count: int) -> bool:
        """Offer blocks until `count` are taken, or there is no room; whether there are more."""
        looks = _LOOKS * count
        while queue and count and looks and self._stack.has_room:
            looks -= 1
            node = queue.popleft()
            # Those without a parent have left the tree, and their bytes may be another's.
            if node.parent is not None:
                count -= self._store(node, self._reason)
        return bool(queue)

    def _wait_for_room(self) -> None:
        def has_room() -> None:
            self._is_waiting_for_room = False

        if not self._is_waiting_for_room:
            self._is_waiting_for_room = True
            self._stack.after_writes(lambda: self._post(has_room))

    def _store(self, node: Node, reason: Reason) -> bool:
        """Offer a block to the tiers; whether one takes it."""
        tokens = len(node.tokens) // TOKEN_BYTES
        position = node.index * self._cache.block_size
        pinned = self._pins is not None and self._pins.holds(node)
        facts = BlockFacts(node.hits, position, tokens, pinned, reason)
        read = partial(self._arena.snapshot, node.block)
        return self._stack.store(node.key, position, tokens, read, facts)
