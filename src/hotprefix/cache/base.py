"""The verbs between the scheduler and the KV cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import Logits
from hotprefix.cache.recut import Places, Recut
from hotprefix.keys.chain import TokenHistory
from hotprefix.kv.accounts import Outcome
from hotprefix.kv.node import Node


class BlockCopier(Protocol):
    """Moves bytes inside the arena."""

    def copy(self, source: BlockId, target: BlockId) -> None:
        """Make the bytes of `target` equal to those of `source`, in every layer."""
        ...


class Room(NamedTuple):
    """What a sequence wants of the arena: blocks for `tokens` tokens at once, the first `reusable` tokens
    of its history from the cache if they are there."""

    tokens: int
    reusable: int


@dataclass(frozen=True, slots=True)
class ReusePlan:
    """What `open` will do for a prompt: share `nodes`, copy `source`, allocate `fresh` blocks.

    `reused` tokens need no computing; with `logits` the whole prompt needs none. `epoch` is the
    tree's when the plan was made: a plan made before a change is refused. `owner` is the root of
    the tenant that pays for the blocks.
    """

    reused: int
    fresh: int
    nodes: tuple[Node, ...] = ()
    source: Node | None = None
    logits: Logits | None = None
    epoch: int = 0
    owner: BlockKey | None = None


@dataclass(frozen=True, slots=True)
class CacheGauges:
    """Blocks by what they do now; bytes of kept logits; evictions since the start.

    `not_kept` are blocks since the start that were dropped or never kept, by why.
    """

    total: int
    free: int
    private: int
    cached: int
    held: int
    logits_bytes: int
    evicted: int
    not_kept: Mapping[Outcome, int] = field(default_factory=dict)


class KvCache(Protocol):
    """Finds, lends, fills and gives back the blocks of sequences. Not thread-safe.

    | verb          | changes                                                          |
    | ------------- | ---------------------------------------------------------------- |
    | `plan`        | nothing                                                          |
    | `open`        | leases shared blocks, copies a partial one, allocates; may evict |
    | `grow`        | adds blocks to a table; may evict                                |
    | `recut`       | drops tokens from the middle of a table; may evict               |
    | `commit`      | seals the blocks that became full, so that others can find them  |
    | `keep_logits` | keeps the logits behind the prompt, for exact repeats            |
    | `share_tail`  | offers the prompt's partial last block, as a copy                |
    | `close`       | offers what was computed for reuse, gives everything back        |
    """

    @property
    def block_size(self) -> int: ...

    @property
    def is_shared(self) -> bool:
        """Whether what one sequence computes can be found by others."""
        ...

    @property
    def evictions(self) -> EvictionLog:
        """Which blocks had to make room."""
        ...

    @property
    def usable_blocks(self) -> int:
        """Blocks that one sequence could have if it were alone."""
        ...

    def plan(self, history: TokenHistory, room: Room | None = None) -> ReusePlan:
        """Without `room`: blocks for all of `history`, any part of which may be reused."""
        ...

    def spare(self, plan: ReusePlan) -> int:
        """Blocks that would still be available after `open`; negative if it can't succeed."""
        ...

    def open(self, history: TokenHistory, plan: ReusePlan) -> Holding | None:
        """Carry out a plan; None, and nothing changed, if the arena is full."""
        ...

    def grow(self, holding: Holding, tokens: int) -> bool:
        """Make room for `tokens` tokens in all; False, and no block taken, if full."""
        ...

    def recut(self, holding: Holding, kept: Places) -> Recut | None:
        """Let all tokens but `kept` go; None, and nothing changed, if there is no room for the blocks
        that others read too. The caller moves the bytes at once: until then they are where they were."""
        ...

    def commit(self, holding: Holding) -> None: ...

    def keep_logits(self, holding: Holding, logits: Logits) -> None: ...

    def share_tail(self, holding: Holding) -> None: ...

    def close(self, holding: Holding) -> None: ...

    def chunk_end(self, start: int, wanted: int, total: int) -> int:
        """Where a prefill chunk may end; see `ReuseRules.chunk_end`."""
        ...

    def redo_from(self, computed: int) -> int:
        """Where a pass begins that computes the last token again; see `ReuseRules.redo_from`."""
        ...

    def gauges(self) -> CacheGauges: ...
