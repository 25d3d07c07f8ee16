"""One step of the engine: admit, compute, draw, tell. Used by one thread only."""

from __future__ import annotations

from collections.abc import Callable, Collection
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, field
from random import Random

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockId, BlockKey, RequestId
from hotprefix.cache.base import KvCache
from hotprefix.cache.pins import PinBoard
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.tiering import Post, Tiering
from hotprefix.engine.answer import AnswerWriter, timings_of, usage_of
from hotprefix.engine.grammar import GrammarCompiler
from hotprefix.engine.observer import EngineGauges, EngineObserver
from hotprefix.engine.request import DeltaSink, FinishReason, GenerationRequest, Grammar
from hotprefix.engine.row_state import RowState
from hotprefix.engine.runner import ModelRunner, Row
from hotprefix.engine.sampler import Sampler
from hotprefix.engine.scheduler import Batch, Scheduler
from hotprefix.engine.sequence import RequestState, Sequence
from hotprefix.engine.shares import Shares
from hotprefix.engine.strategy.base import Strategy
from hotprefix.engine.strategy.catalogue import Strategies
from hotprefix.engine.strategy.watch import AttentionWatch
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.zones import PublicZone
from hotprefix.kv.top import NO_PATHS, TopLimits, TopPaths, top_paths
from hotprefix.prompt.answers import AnswerMemory
from hotprefix.prompt.tokenizer import Tokenizer
from hotprefix.tenants.quota import TenantQuota
from hotprefix.traces.recording import Recorder

GAUGE_SECONDS = 0.25
_SAVED_IN_A_STEP = 2
"""Blocks that go to the tiers beside the work of a step: a fraction of a millisecond."""
_SAVED_AT_ONCE = 8
_RETAINED_SECONDS = 24 * 3600.0
"""The tiers drop what was pinned last."""
_CLOSING_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class Parts:
    """What a stepper works with. `root_for` gives a tenant's scope root; `strategies` say how much of the
    arena a request may have; `answers` keeps the ids of answers for later turns; `watch`, if there is
    one, notes what attention does with cached tokens."""

    cache: KvCache
    runner: ModelRunner
    scheduler: Scheduler
    tokenizer: Tokenizer
    grammars: GrammarCompiler
    eos_ids: tuple[int, ...]
    vocab_size: int
    block_bytes: int
    strategies: Strategies
    root_for: Callable[[str], BlockKey]
    answers: AnswerMemory | None = None
    pins: PinBoard | None = None
    tiering: Tiering | None = None
    watch: AttentionWatch | None = None
    sampler: Sampler = field(default_factory=Sampler)


class Stepper:
    """Holds the requests in flight and moves them on, a step at a time."""

    def __init__(self, parts: Parts, clock: Clock, observer: EngineObserver) -> None:
        self._parts = parts
        self._clock = clock
        self._observer = observer
        self.recorder: Recorder | None = None
        """Hears of requests that have ended; the owner may change it at any time."""
        self._writer = AnswerWriter(parts.eos_ids)
        self._states: dict[RequestId, RequestState] = {}
        self._evicted = 0
        self._zone: PublicZone | None = None
        self._shares = Shares(parts.cache, parts.root_for)
        self._gauged_at = clock.now()

    @property
    def idle(self) -> bool:
        """Whether there is nothing to do."""
        return self._parts.scheduler.idle

    @property
    def vocab_size(self) -> int:
        """Width of the logits."""
        return self._parts.vocab_size

    @property
    def cache(self) -> KvCache:
        """The KV cache, for checkers."""
        return self._parts.cache

    @property
    def tiering(self) -> Tiering | None:
        """What is behind the arena; None if nothing is."""
        return self._parts.tiering

    def compile(self, grammar: Grammar) -> None:
        """Have a grammar ready for `prepare`. Safe on any thread; raises `InvalidRequest`."""
        self._parts.grammars.check(grammar)

    def strategy_of(self, request: GenerationRequest) -> Strategy:
        """How a request uses the arena. Safe on any thread; raises `InvalidRequest`."""
        return self._parts.strategies.choose(request.strategy)

    def prepare(self, request: GenerationRequest, sink: DeltaSink) -> RequestState:
        """Build what a request needs. Safe on any thread; raises `InvalidRequest` for a bad grammar or
        strategy."""
        state = RequestState(request, sink, self._clock.now())
        parts, sampling = self._parts, request.sampling
        root = parts.root_for(request.tenant)
        strategy = self.strategy_of(request)
        room = strategy.longest_answer(len(request.prompt_ids))
        for index in range(request.n):
            matcher = parts.grammars.matcher(sampling.grammar) if sampling.grammar is not None else None
            row = RowState(sampling, parts.vocab_size, request.prompt_ids, choice=index, matcher=matcher)
            history = self._history(root, request.prompt_ids)
            sequence = Sequence(state, index, history, row, parts.tokenizer.stream(), strategy)
            sequence.limit = room if sampling.max_tokens is None else min(room, sampling.max_tokens)
            state.sequences.append(sequence)
        return state

    def enqueue(self, state: RequestState) -> None:
        """Put a prepared request into the line, once the tiers have brought what they have of it."""
        self._states[state.request.request_id] = state
        tiering, history = self._parts.tiering, state.sequences[0].history
        if tiering is None or not tiering.restore(history, lambda: self._line_up(state)):
            self._line_up(state)

    def connect(self, post: Post) -> None:
        """Tell the tiers how to have a call run on the thread that steps."""
        if self._parts.tiering is not None:
            self._parts.tiering.connect(post)

    def wait_at_most(self) -> float | None:
        """Seconds until `step` should be called though nothing was posted; None: never."""
        return self._parts.tiering.wait_at_most() if self._parts.tiering is not None else None

    def save_some(self) -> bool:
        """Save a few blocks to the tiers; whether there are more. For idle times."""
        return self._parts.tiering is not None and self._parts.tiering.save_some(_SAVED_AT_ONCE)

    def abort(self, request_id: RequestId) -> None:
        """End a request; nothing happens if it has ended."""
        state = self._states.get(request_id)
        if state is not None:
            for sequence in list(state.sequences):
                self._end(sequence, FinishReason.ABORTED)

    def end_all(self, reason: FinishReason, message: str) -> None:
        """End every request in flight, running or waiting."""
        for state in list(self._states.values()):
            for sequence in list(state.sequences):
                self._end(sequence, reason, message)

    def grant(self, quotas: SequenceOf[TenantQuota]) -> tuple[str, ...]:
        """From now on, these are the tenants' shares of the cache; see `Shares.grant`."""
        return self._shares.grant(quotas)

    def publish(self, zone: PublicZone) -> None:
        """From now on, prompts that begin with a prefix of `zone` read that part with everybody."""
        self._zone = zone

    def _line_up(self, state: RequestState) -> None:
        """Into the scheduler's line, unless the request has ended meanwhile."""
        if state.request.request_id in self._states:
            for sequence in state.sequences:
                self._parts.scheduler.enqueue(sequence)

    def _history(self, root: BlockKey, token_ids: SequenceOf[int]) -> TokenHistory:
        zone = self._zone
        if zone is None:
            return TokenHistory(root, token_ids, self._parts.cache.block_size)
        return zone.history(root, token_ids)

    def history(self, tenant: str, token_ids: SequenceOf[int]) -> TokenHistory:
        """A tenant's tokens with the keys of their blocks."""
        return self._history(self.root_for(tenant), token_ids)

    def root_for(self, tenant: str) -> BlockKey:
        """The root of a tenant's keys."""
        return self._parts.root_for(tenant)

    def pin(self, name: str, tenant: str, token_ids: SequenceOf[int]) -> int:
        """Hold a computed prefix; see `PinBoard.pin`. Without a cache nothing can be held."""
        if self._parts.pins is None:
            return 0
        history = self._history(self.root_for(tenant), token_ids)
        held = self._parts.pins.pin(name, history)
        if held and self._parts.tiering is not None:
            self._parts.tiering.pinned(history, self._clock.wall() + _RETAINED_SECONDS)
        return held

    def top(self, limits: TopLimits, owners: Collection[BlockKey] | None) -> TopPaths:
        """The prefixes that saved most; see `top_paths`. Without a cache there are none."""
        cache = self._parts.cache
        return top_paths(cache.tree, limits, owners) if isinstance(cache, PrefixCache) else NO_PATHS

    def unpin(self, name: str) -> None:
        """Let a pinned prefix go."""
        if self._parts.pins is not None:
            self._parts.pins.unpin(name)

    def close(self) -> None:
        """Let every pinned prefix go, and save what the tiers do not have yet."""
        if self._parts.pins is not None:
            self._parts.pins.clear()
        if self._parts.tiering is not None:
            self._parts.tiering.close(_CLOSING_SECONDS)

    def step(self) -> None:
        """Admit, answer exact repeats, compute a batch and draw from it."""
        scheduler, tiering = self._parts.scheduler, self._parts.tiering
        if tiering is not None:
            tiering.expire()
            tiering.save_urgent(_SAVED_IN_A_STEP)
        batch = scheduler.admit()
        if scheduler.is_stuck and self._let_pins_go():
            batch = scheduler.admit()
        self._note_admitted(batch)
        self._draw_ready(batch)
        scheduler.fill(batch)
        if batch.starved and self._let_pins_go():
            batch.starved, batch.parts = [], []
            scheduler.fill(batch)
        for sequence in batch.starved:
            self._end(sequence, FinishReason.LENGTH)
        for _ in batch.preempted:
            self._observer.preempted()
        if batch.parts and not batch.starved:
            self._compute(batch)
        self._tell_gauges()

    def warm_up(self) -> None:
        """Run the shapes that requests will have, so that the first one finds compiled kernels."""
        cache, random = self._parts.cache, Random(0)
        size = cache.block_size
        blocks = min(cache.usable_blocks, 16)
        tokens = [random.randrange(self.vocab_size) for _ in range(size * blocks)]
        history = TokenHistory(self._parts.root_for("\0warm-up"), tokens, size)
        table = [BlockId(block) for block in range(blocks)]
        # No sequence exists yet: every block is free, so writing to them harms nobody.
        whole = Row(history.tokens(0, size * blocks), 0, table, True)
        for _ in range(2):
            self._parts.runner.run([whole])
        past = max(0, size * blocks - 30)
        for row in (Row(tokens[past:], past, table, True), Row(tokens[-1:], size * blocks - 1, table, True)):
            for _ in range(3):
                self._parts.runner.run([row])

    def flush_gauges(self) -> None:
        """Tell the observer how things stand now."""
        cache, scheduler = self._parts.cache.gauges(), self._parts.scheduler
        if cache.evicted > self._evicted:
            self._observer.evicted(cache.evicted - self._evicted)
            self._evicted = cache.evicted
        self._gauged_at = self._clock.now()
        pinned = self._parts.pins.blocks if self._parts.pins is not None else 0
        self._observer.gauges(
            EngineGauges(
                running=len(scheduler.running),
                waiting=len(scheduler.waiting),
                arena_bytes=(cache.total - cache.free) * self._parts.block_bytes,
                arena_limit_bytes=cache.total * self._parts.block_bytes,
                blocks={
                    "free": cache.free,
                    "in_use": cache.private + cache.held - pinned,
                    "pinned": pinned,
                    "cached": cache.cached - cache.held,
                },
                not_kept={outcome.value: count for outcome, count in cache.not_kept.items()},
                tenant_blocks=self._shares.cached(),
            )
        )

    def _let_pins_go(self) -> bool:
        """Whether there were any. A request comes before what is kept for later ones."""
        pins = self._parts.pins
        if pins is None or not len(pins):
            return False
        pins.clear()
        return True

    def _note_admitted(self, batch: Batch) -> None:
        now = self._clock.now()
        for sequence in batch.admitted:
            state = sequence.parent
            if state.admitted_at is None and sequence.holding is not None:
                state.admitted_at = now
                state.cached_tokens = sequence.holding.computed
                self._observer.request_admitted(now - state.submitted_at)
                self._observer.prompt_matched(len(state.request.prompt_ids), state.cached_tokens)
                if self._parts.tiering is not None and sequence.holding.lease is not None:
                    self._parts.tiering.reused(sequence.holding.lease.nodes)

    def _draw_ready(self, batch: Batch) -> None:
        for sequence in batch.ready:
            logits, sequence.ready_logits = sequence.ready_logits, None
            if logits is not None:
                self._draw(logits[np.newaxis], [sequence])

    def _compute(self, batch: Batch) -> None:
        parts = self._parts
        logits = parts.runner.run(batch.rows())
        if parts.watch is not None:
            parts.watch.note([(part.sequence, part.end - part.start) for part in batch.parts])
        sampled: list[Sequence] = []
        for part in batch.parts:
            wanted = part.sampled
            parts.scheduler.book(part)
            if not wanted:
                continue
            if part.prefill:
                self._prompt_done(part.sequence, logits[len(sampled)])
            sampled.append(part.sequence)
        self._draw(logits, sampled)

    def _prompt_done(self, sequence: Sequence, logits: NDArray[np.float32]) -> None:
        finite = bool(np.isfinite(logits.max()))  # others would fail every exact repeat
        if finite and not sequence.generated and sequence.holding is not None:
            self._parts.cache.keep_logits(sequence.holding, logits)
        self._parts.scheduler.prompt_done(sequence)

    def _draw(self, logits: NDArray[np.float32], sequences: list[Sequence]) -> None:
        drawn = self._parts.sampler.sample(logits, [sequence.row for sequence in sequences])
        now = self._clock.now()
        gaps: list[float] = []
        for sequence, token in zip(sequences, drawn, strict=True):
            state = sequence.parent
            if state.first_token_at is None:
                self._observer.first_token(now - state.submitted_at)
            if sequence.token_at is not None:
                gaps.append(now - sequence.token_at)
            reason = self._writer.accept(sequence, token, now)
            if reason is not None:
                self._end(sequence, reason)
        self._observer.tokens(len(drawn), gaps)

    def _end(self, sequence: Sequence, reason: FinishReason, error: str | None = None) -> None:
        state = sequence.parent
        self._parts.scheduler.remove(sequence)
        state.sequences.remove(sequence)
        if reason in (FinishReason.STOP, FinishReason.LENGTH):
            self._remember(sequence)
        now = self._clock.now()
        if self._writer.finish(sequence, reason, now, error) is not None:
            del self._states[state.request.request_id]
            self._observer.finished(reason, timings_of(state, now), usage_of(state))
            self._record(sequence, now)

    def _record(self, sequence: Sequence, now: float) -> None:
        """Tell the recorder of a request that has ended, whose last choice is `sequence`."""
        state, history = sequence.parent, sequence.history
        if self.recorder is None or state.admitted_at is None:
            return
        came = self._clock.wall() - (now - state.submitted_at)
        full, rest = divmod(sequence.prompt_tokens, history.block_size)
        keys = [*history.keys(full), *([history.key_at(sequence.prompt_tokens)] if rest else [])]
        tokens = (sequence.prompt_tokens, state.completion_tokens)
        self.recorder.write(came, history.root_of(0).hex()[:16], keys, tokens)

    def _remember(self, sequence: Sequence) -> None:
        """Keep the answer's ids for the next turn, if its whole text goes to the client."""
        if self._parts.answers is None or sequence.stops.matched is not None:
            return
        request = sequence.parent.request
        answer = sequence.history.tokens(sequence.prompt_tokens, len(sequence.history))
        if answer and answer[-1] in self._parts.eos_ids:
            answer.pop()
        self._parts.answers.remember(request.tenant, request.prompt_ids, answer)

    def _tell_gauges(self) -> None:
        if self._clock.now() - self._gauged_at >= GAUGE_SECONDS:
            self.flush_gauges()
