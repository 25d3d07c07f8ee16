"""A whole engine but for its thread, around the fake model; time moves by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from collections.abc import Sequence as Tokens
from dataclasses import dataclass, field
from queue import Queue
from typing import Any

from hotprefix.base.clock import ManualClock
from hotprefix.base.ids import RequestId
from hotprefix.cache.base import KvCache
from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.pins import PinBoard
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.regulars import Regulars
from hotprefix.cache.rules import ReuseRules
from hotprefix.cache.tiering import Tiering
from hotprefix.cache.uncached import UncachedCache
from hotprefix.engine.grammar import GrammarCompiler
from hotprefix.engine.observer import EngineGauges, NullObserver
from hotprefix.engine.request import Delta, FinishReason, GenerationRequest, Sampling, Timings, Usage
from hotprefix.engine.scheduler import Batch, Scheduler
from hotprefix.engine.settings import DecodeMode, EngineSettings
from hotprefix.engine.stepper import Parts, Stepper
from hotprefix.engine.strategy.base import Bounds
from hotprefix.engine.strategy.catalogue import Strategies
from hotprefix.engine.strategy.choice import StrategyChoice
from hotprefix.engine.strategy.compactor import Compactor
from hotprefix.keys.scope import CacheScope
from hotprefix.kv import invariants
from hotprefix.kv.accounts import Accounts
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.policy.quota import QuotaPolicy
from hotprefix.kv.pool import BlockPool, BlockState
from hotprefix.kv.tree import BlockTree
from hotprefix.tiers.stack import TierStack
from tests.engine.fake_model import EOS, VOCAB, FakeModel, byte_tokenizer, letters

LOWER = letters("abcdefghijklmnopqrstuvwxyz")


class Recorder(NullObserver):
    """What the engine said."""

    def __init__(self) -> None:
        self.matched: list[tuple[int, int]] = []
        self.firsts: list[float] = []
        self.gaps: list[float] = []
        self.drawn = 0
        self.ended: list[FinishReason] = []
        self.preemptions = 0
        self.evictions = 0
        self.last: EngineGauges | None = None

    def prompt_matched(self, prompt_tokens: int, cached_tokens: int) -> None:
        self.matched.append((prompt_tokens, cached_tokens))

    def first_token(self, seconds: float) -> None:
        self.firsts.append(seconds)

    def tokens(self, count: int, gaps: Tokens[float] = ()) -> None:
        self.drawn += count
        self.gaps.extend(gaps)

    def finished(self, reason: FinishReason, timings: Timings, usage: Usage) -> None:
        self.ended.append(reason)

    def preempted(self) -> None:
        self.preemptions += 1

    def evicted(self, blocks: int) -> None:
        self.evictions += blocks

    def gauges(self, gauges: EngineGauges) -> None:
        self.last = gauges


class RecordingScheduler(Scheduler):
    """The scheduler, with every batch it made."""

    def __init__(self, cache: KvCache, settings: EngineSettings, compactor: Compactor | None = None) -> None:
        super().__init__(cache, settings, compactor)
        self.batches: list[Batch] = []

    def fill(self, batch: Batch) -> None:
        super().fill(batch)
        self.batches.append(batch)


@dataclass
class Answer:
    """All deltas of a request."""

    request: GenerationRequest
    deltas: list[Delta] = field(default_factory=list)

    @property
    def ended(self) -> bool:
        return bool(self.deltas) and self.deltas[-1].last

    def tokens(self, index: int = 0) -> list[int]:
        """What a choice said, the end token left out if it was not sent."""
        return [token for delta in self.deltas if delta.index == index for token in delta.token_ids]

    def text(self, index: int = 0) -> str:
        return "".join(delta.text for delta in self.deltas if delta.index == index)

    def end(self, index: int = 0) -> Delta:
        """The only delta of a choice with a finish reason."""
        ends = [delta for delta in self.deltas if delta.index == index and delta.finish_reason is not None]
        assert len(ends) == 1, ends
        return ends[0]

    def reason(self, index: int = 0) -> FinishReason | None:
        return self.end(index).finish_reason

    def usage(self) -> Usage:
        usage = self.deltas[-1].usage
        assert usage is not None
        return usage

    def check_ended_once(self) -> None:
        """Exactly one end for each choice, exactly one last delta, and it comes last."""
        assert [delta.last for delta in self.deltas] == [False] * (len(self.deltas) - 1) + [True]
        ends: list[int] = [delta.index for delta in self.deltas if delta.finish_reason is not None]
        assert sorted(ends) == list(range(self.request.n))
        for index in range(self.request.n):
            mine = [delta for delta in self.deltas if delta.index == index]
            assert mine[-1].finish_reason is not None, "something came after the end of a choice"
        assert self.deltas[-1].timings is not None


class World:
    """`blocks` blocks of `block` tokens around a fake model that says letters of `alphabet`."""

    def __init__(
        self,
        blocks: int = 64,
        *,
        block: int = 4,
        settings: EngineSettings | None = None,
        granularity: int = 1,
        alphabet: Tokens[int] = LOWER,
        reserve: int = 0,
        tiers: Callable[[FakeModel], TierStack] | None = None,
    ) -> None:
        self.settings = settings if settings is not None else EngineSettings()
        self.pool = BlockPool(blocks)
        self.model = FakeModel(blocks, block, alphabet, self.pool)
        if self.settings.decode is DecodeMode.EXACT:
            self.model.least, self.model.granularity = 2, granularity
        self.cache = self._cache(block, granularity, reserve)
        compactor = Compactor(self.cache, self.model, self.model)
        self.scheduler = RecordingScheduler(self.cache, self.settings, compactor)
        room = self.cache.usable_blocks * block
        self.clock = ManualClock()
        self.observer = Recorder()
        self.inbox: Queue[Callable[[], None]] = Queue()
        self.tiering = self._tiering(tiers)
        tokenizer = byte_tokenizer()
        parts = Parts(
            cache=self.cache,
            runner=self.model,
            scheduler=self.scheduler,
            tokenizer=tokenizer,
            grammars=GrammarCompiler(tokenizer, (EOS,), VOCAB),
            eos_ids=(EOS,),
            vocab_size=VOCAB,
            block_bytes=1,
            strategies=Strategies(self.settings.strategy, Bounds(room, room, block)),
            root_for=lambda tenant: CacheScope("fake", "digests", tenant=tenant).root(),
            pins=PinBoard(self.cache, blocks // 2) if isinstance(self.cache, PrefixCache) else None,
            tiering=self.tiering,
        )
        self.stepper = Stepper(parts, self.clock, self.observer)
        self.stepper.connect(self.inbox.put)
        self.answers: list[Answer] = []
        self._ids = itertools.count()

    def submit(
        self,
        prompt: str | Tokens[int],
        max_tokens: int | None = 8,
        *,
        n: int = 1,
        tenant: str = "",
        strategy: StrategyChoice | None = None,
        keeps_short: bool = False,
        **sampling: Any,
    ) -> Answer:
        """Put a request into the line, greedy if not told otherwise."""
        ids = letters(prompt) if isinstance(prompt, str) else list(prompt)
        sampling.setdefault("temperature", 0.0)
        request = GenerationRequest(
            RequestId(f"r{next(self._ids)}"),
            ids,
            Sampling(max_tokens=max_tokens, **sampling),
            n,
            tenant,
            strategy,
            keeps_short,
        )
        answer = Answer(request)
        self.stepper.enqueue(self.stepper.prepare(request, answer.deltas.append))
        self.answers.append(answer)
        return answer

    def step(self, count: int = 1) -> None:
        """So many steps, with the books checked after each."""
        for _ in range(count):
            self.receive()
            self.stepper.step()
            self.clock.advance(0.001)
            self.check()

    def run(self, limit: int = 3000) -> None:
        """Steps until there is nothing to do; everything has ended then and nothing has leaked."""
        for _ in range(limit):
            self.receive(wait=self.stepper.idle)
            if self.stepper.idle and not self._is_fetching:
                break
            self.step()
        assert self.stepper.idle, "the engine does not come to an end"
        for answer in self.answers:
            answer.check_ended_once()
        self.check_nothing_leaked()

    @property
    def _is_fetching(self) -> bool:
        return self.tiering is not None and self.tiering.wait_at_most() is not None

    def receive(self, *, wait: bool = False) -> None:
        """Run what the tiers' threads have posted; with `wait`, until no request waits for them."""
        while not self.inbox.empty() or (wait and self._is_fetching):
            self.inbox.get(timeout=10)()
            self.check()

    def settle(self) -> None:
        """Wait for what the tiers' threads have begun: what comes next then depends on nobody's speed."""
        if self.tiering is not None:
            assert self.tiering.stack.flush(10)
            self.receive(wait=True)

    def rest(self) -> None:
        """What the engine does when there is nothing to do: save, here to the end."""
        while self.tiering is not None:
            while self.stepper.save_some():
                pass
            assert self.tiering.stack.flush(10)
            if self.inbox.empty():
                break
            self.receive()

    def ask(self, prompt: str | Tokens[int], max_tokens: int | None = 8, **options: Any) -> Answer:
        """Submit and run to the end."""
        answer = self.submit(prompt, max_tokens, **options)
        self.run()
        return answer

    def expected(self, answer: Answer) -> list[int]:
        """What the twin says to the prompt of a greedy request."""
        sampling, prompt = answer.request.sampling, answer.request.prompt_ids
        strategy = self.stepper.strategy_of(answer.request)
        room = strategy.longest_answer(len(prompt))
        count = room if sampling.max_tokens is None else min(room, sampling.max_tokens)
        tokens = self.model.greedy(prompt, count, strategy.cutter)
        return tokens[:-1] if tokens[-1] == EOS else tokens

    def check(self) -> None:
        """Every invariant of the books."""
        holdings = [s.holding for s in self.scheduler.running if s.holding is not None]
        assert len(holdings) == len(self.scheduler.running)
        if isinstance(self.cache, PrefixCache):
            cache = self.cache
            invariants.check(cache.tree, cache.pool, cache.leases, cache.private_blocks(holdings))
        else:
            assert self.pool.count(BlockState.PRIVATE) == sum(len(holding.table) for holding in holdings)

    def check_nothing_leaked(self) -> None:
        """Nothing is held when nobody runs."""
        gauges = self.cache.gauges()
        assert (gauges.private, gauges.held) == (0, 0)
        assert gauges.free + gauges.cached == gauges.total
        assert not self.stepper._states
        flights = self.scheduler._flights
        assert len(flights) == 0 and not flights._claims and not flights._followed
        if isinstance(self.cache, PrefixCache):
            assert len(self.cache.leases) == 0

    def _tiering(self, tiers: Callable[[FakeModel], TierStack] | None) -> Tiering | None:
        if tiers is None or not isinstance(self.cache, PrefixCache):
            return None
        return Tiering(self.cache, self.model, tiers(self.model), self.clock)

    def _cache(self, block: int, granularity: int, reserve: int) -> KvCache:
        exact = self.settings.decode is DecodeMode.EXACT
        rules = ReuseRules(block, granularity, keep_decoded=granularity == 1 or not exact)
        if self.settings.policy is None:
            return UncachedCache(self.pool, rules)
        accounts, make = Accounts(reserve), POLICIES[self.settings.policy]
        quotas = QuotaPolicy(lambda: make(self.pool.size), accounts)
        tree, logits = BlockTree(block, quotas.in_force, accounts), LogitsStore(self.settings.logits_bytes)
        regulars = Regulars(self.settings.shortest_kept)
        return PrefixCache(self.pool, tree, rules, logits, self.model, quotas, regulars)
