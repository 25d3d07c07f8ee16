"""Who computes what in the next step: continuous batching with chunked prefill."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.cache.base import KvCache, ReusePlan
from hotprefix.cache.holding import Holding
from hotprefix.cache.single_flight import SingleFlight
from hotprefix.engine.runner import Row
from hotprefix.engine.sequence import Sequence
from hotprefix.engine.settings import DecodeMode, EngineSettings
from hotprefix.engine.strategy.compactor import Compactor

_SMALLEST_CHUNK = 32
"""Tokens; smaller pieces of a prompt cost more in steps than they save in waiting."""


class Part(NamedTuple):
    """Tokens [start, end) of a sequence are computed; `prefill` if by a prefill pass."""

    sequence: Sequence
    start: int
    end: int
    prefill: bool

    @property
    def sampled(self) -> bool:
        """Whether the logits behind its last token are wanted."""
        return self.end == len(self.sequence.history)

    @property
    def past(self) -> int:
        """Tokens in the cache before it: its first position."""
        return self.start - _holding(self.sequence).dropped

    @property
    def table(self) -> list[BlockId]:
        """The blocks that it reads and writes."""
        return _holding(self.sequence).table


@dataclass(slots=True)
class Batch:
    """One step. `ready` sequences have their logits from the cache and need no computing.

    `starved` ones can't go on: they are alone and the arena is full.
    """

    parts: list[Part] = field(default_factory=list)
    ready: list[Sequence] = field(default_factory=list)
    admitted: list[Sequence] = field(default_factory=list)
    preempted: list[Sequence] = field(default_factory=list)
    starved: list[Sequence] = field(default_factory=list)

    def rows(self) -> list[Row]:
        """The parts as the runner wants them."""
        return [
            Row(part.sequence.history.tokens(part.start, part.end), part.past, part.table, part.sampled)
            for part in self.parts
        ]


class Scheduler:
    """Keeps the waiting line and the running set; plans a step and books its outcome.

    Admission is first come, first served, except that a prompt whose next block is being computed
    by another waits for it without holding up those behind. When a decoding sequence finds no
    block, the one that came last gives its blocks up and waits again; what it had computed stays
    in the cache for as long as there is room. A sequence whose strategy bounds its cache has it cut by
    `compactor` when it is full and more is to be computed: at lengths that depend on nothing else.
    """

    def __init__(self, cache: KvCache, settings: EngineSettings, compactor: Compactor | None = None) -> None:
        self._cache = cache
        self._settings = settings
        self._compactor = compactor
        self._flights = SingleFlight()
        # Whoever was preempted is not let in again before a step has passed.
        self._crowded = False
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return not self.waiting and not self.running

    @property
    def is_stuck(self) -> bool:
        """Whether the line can't move though nobody runs: something else holds the blocks."""
        return bool(self.waiting) and not self.running

    def enqueue(self, sequence: Sequence) -> None:
        """Put a new sequence at the end of the line."""
        self.waiting.append(sequence)

    def admit(self) -> Batch:
        """Take from the line whoever fits. `ready` ones are to be sampled before `fill`."""
        batch = Batch()
        if not self._crowded:
            self._admit(batch)
        return batch

    def fill(self, batch: Batch) -> None:
        """Make room, then choose the parts: everyone who decodes, and prompts within the budget."""
        self._make_room(batch)
        self._crowded = bool(batch.preempted or batch.starved)
        prefills = []
        for sequence in self.running:
            holding = _holding(sequence)
            if sequence.is_decoding:
                start = self._redone(holding) if self._is_exact else holding.computed
                batch.parts.append(Part(sequence, start, len(sequence.history), False))
            elif sequence.pending:
                prefills.append(sequence)
        settings = self._settings
        budget = settings.mixed_chunk if batch.parts else settings.prefill_chunk
        self._fill_prefills(batch, prefills, budget)

    def book(self, part: Part) -> None:
        """Note that a part was computed: its full blocks can be found from now on."""
        sequence, holding = part.sequence, _holding(part.sequence)
        holding.computed = part.end
        if part.prefill:
            holding.prefilled = part.end
        before = holding.sealed
        self._cache.commit(holding)
        if holding.sealed > before:
            for key in sequence.history.keys(holding.sealed)[before:]:
                self._flights.done(sequence, key)

    def prompt_done(self, sequence: Sequence) -> None:
        """The prompt of `sequence` is computed: whoever waited for its tail may copy it."""
        if self._flights.is_followed(sequence):
            self._cache.share_tail(_holding(sequence))
        self._flights.release(sequence)

    def remove(self, sequence: Sequence) -> None:
        """A sequence ended, wherever it was; what it computed is offered for reuse."""
        self._flights.release(sequence)
        sequence.tally = None
        if sequence.holding is not None:
            self._cache.close(sequence.holding)
            sequence.holding = None
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)

    def _make_room(self, batch: Batch) -> None:
        """A block for the next token of everyone who decodes, by preemption if need be."""
        for sequence in list(self.running):
            while sequence.holding is not None and not self._find_room(sequence, sequence.holding):
                if len(self.running) == 1:
                    batch.starved.append(sequence)
                    break
                yielding = (other for other in reversed(self.running) if other.strategy.yields)
                self._preempt(next(yielding, sequence), batch)

    def _find_room(self, sequence: Sequence, holding: Holding) -> bool:
        """Whether there are blocks for what is to be computed next."""
        wanted, cutter = len(sequence.history) - holding.dropped, sequence.strategy.cutter
        if cutter is None:
            return self._cache.grow(holding, wanted)
        if sequence.pending and holding.cached >= cutter.budget:
            if self._compactor is None:
                raise LogicError(f"nobody can cut caches for {sequence.strategy.name}")
            if not self._compactor.compact(holding, cutter, sequence.tally):
                return False
            sequence.parent.dropped_tokens = max(sequence.parent.dropped_tokens, holding.dropped)
            wanted = len(sequence.history) - holding.dropped
        return self._cache.grow(holding, min(wanted, cutter.budget))

    def _preempt(self, sequence: Sequence, batch: Batch) -> None:
        holding = _holding(sequence)
        holding.keepable = holding.computed  # it comes again for certain
        self.remove(sequence)
        self.waiting.appendleft(sequence)
        batch.preempted.append(sequence)

    def _admit(self, batch: Batch) -> None:
        blocked: list[Sequence] = []
        while self.waiting and len(self.running) < self._settings.max_running:
            sequence = self.waiting.popleft()
            if sequence.waits_for is not None and self._flights.leader(sequence.waits_for) is not None:
                blocked.append(sequence)
                continue
            plan = self._cache.plan(sequence.history, sequence.room)
            if self._has_leader(sequence, plan):
                blocked.append(sequence)
                continue
            if not self._open(sequence, plan):
                self.waiting.appendleft(sequence)
                break
            batch.admitted.append(sequence)
            if sequence.ready_logits is not None:
                batch.ready.append(sequence)
        self.waiting.extendleft(reversed(blocked))

    def _has_leader(self, sequence: Sequence, plan: ReusePlan) -> bool:
        sequence.waits_for = None
        if plan.logits is not None:
            return False
        keys = self._claims(sequence)
        shared = plan.reused // self._cache.block_size
        leader = self._flights.leader(keys[shared]) if shared < len(keys) else None
        if leader is None:
            return False
        self._flights.follow(leader)
        sequence.waits_for = keys[shared]
        return True

    def _open(self, sequence: Sequence, plan: ReusePlan) -> bool:
        headroom = len(self.running)
        if self._cache.spare(plan) < headroom:
            return False
        holding = self._cache.open(sequence.history, plan)
        if holding is None:
            return False
        if sequence.is_kept_at_once:
            holding.keepable = len(sequence.history)
        sequence.holding = holding
        sequence.ready_logits = plan.logits
        self.running.append(sequence)
        if plan.logits is None:
            shared = plan.reused // self._cache.block_size
            kept = -(-holding.keepable // self._cache.block_size)
            self._flights.claim(sequence, self._claims(sequence)[shared:kept])
        return True

    def _claims(self, sequence: Sequence) -> list[BlockKey]:
        """The keys of what the sequence computes and can share: all of it, or what comes before the
        first cut of its cache; nothing where nothing is shared."""
        if not self._cache.is_shared:
            return []
        reusable, history = sequence.room.reusable, sequence.history
        if reusable < len(history):
            return history.keys(reusable // history.block_size)
        return history.all_keys()

    @property
    def _is_exact(self) -> bool:
        return self._settings.decode is DecodeMode.EXACT

    def _redone(self, holding: Holding) -> int:
        """Where a pass begins that computes the last token again."""
        return self._cache.redo_from(holding.cached) + holding.dropped

    def _fill_prefills(self, batch: Batch, prefills: list[Sequence], budget: int) -> None:
        """The oldest prompt has its turn in every step; those with less left pass it on half of the budget.

        Short questions so pass long documents, and no document waits for ever.
        """
        if not prefills:
            return
        oldest, *others = prefills
        others.sort(key=lambda sequence: sequence.pending)
        passed = bool(others) and others[0].pending < oldest.pending
        kept = min(oldest.pending, budget - budget // 2 if passed else budget)
        left = budget
        while others and left - kept >= min(others[0].pending, _SMALLEST_CHUNK):
            left -= self._add_prefill(batch, others.pop(0), left - kept)
        self._add_prefill(batch, oldest, max(left, 1))

    def _add_prefill(self, batch: Batch, sequence: Sequence, wanted: int) -> int:
        holding, cutter = _holding(sequence), sequence.strategy.cutter
        start, dropped, total = holding.computed, holding.dropped, len(sequence.history) - holding.dropped
        if self._is_exact and holding.cut_at == start:
            # As decoding does, which sees the last token behind the cut: so both write the same.
            start = self._redone(holding)
        if cutter is not None:
            total = min(total, cutter.budget)
        end = self._cache.chunk_end(start - dropped, wanted, total) + dropped
        batch.parts.append(Part(sequence, start, end, True))
        return end - start


def _holding(sequence: Sequence) -> Holding:
    if sequence.holding is None:
        raise LogicError("the sequence has no blocks")
    return sequence.holding
