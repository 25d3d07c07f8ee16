"""Serves a trace with replicas of one kind and adds up what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from hotprefix.base.ids import BlockKey
from hotprefix.traces.key_tier import KeyTier
from hotprefix.traces.latency import Percentiles
from hotprefix.traces.outcome import FirstToken, Loss, Money, Outcome
from hotprefix.traces.provider_rules import Bill
from hotprefix.traces.replica import Replica, Served
from hotprefix.traces.request import TraceRequest
from hotprefix.traces.routing import build_router
from hotprefix.traces.settings import ReplaySettings


class Simulator:
    """One run. Requests are served one after the other; who waits for whom only counts for times."""

    def __init__(self, settings: ReplaySettings, trace_block: int) -> None:
        self.settings = settings
        self.block = trace_block * settings.merged
        lifetime = settings.effective_lifetime
        self.replicas = [
            Replica(
                settings.policy,
                settings.capacity,
                lifetime,
                KeyTier(settings.tier) if settings.tier else None,
            )
            for _ in range(settings.replicas)
        ]
        self._router = build_router(settings.routing, self.replicas, self.block * settings.speed.computed)
        self._first, self._queued = Percentiles(), Percentiles()
        self._lost: Counter[Loss] = Counter()
        self._bills = (Bill(), Bill(), Bill())
        self._requests = self._blocks = self._hits = self._restored = self._ideal = 0
        self._tokens = self._hit_tokens = self._counted = self._ideal_tokens = 0

    def serve(self, request: TraceRequest) -> None:
        """Replay one request."""
        keys, known = request.keys, request.known
        if self.settings.merged > 1:
            keys, known = merged_keys(keys, known, self.settings.merged)
        scope, now, block, prompt = request.scope, request.at, self.block, request.input
        several = len(self.replicas) > 1
        replica = self._router.choose(scope, keys, now) if several else self.replicas[0]
        elsewhere = self._best_other(replica, scope, keys, known) if several else 0
        served = replica.serve(scope, keys, now)
        blocks = served.hits + served.restored
        known = max(known, blocks)
        hit, ideal = min(blocks * block, prompt), min(known * block, prompt)
        self._requests += 1
        self._blocks += len(keys)
        self._hits += blocks
        self._restored += served.restored
        self._ideal += known
        self._tokens += prompt
        self._hit_tokens += hit
        self._ideal_tokens += ideal
        self._note_losses(prompt, hit, ideal, min(max(hit, elsewhere * block), ideal), served)
        self._note_time(replica, now, prompt, hit, min(served.hits * block, prompt))
        self._note_money(prompt, hit, ideal, request.output)

    def outcome(self) -> Outcome:
        """The sums so far."""
        first, queued = self._first, self._queued
        return Outcome(
            settings=self.settings,
            requests=self._requests,
            blocks=self._blocks,
            hit_blocks=self._hits,
            restored_blocks=self._restored,
            ideal_blocks=self._ideal,
            tokens=self._tokens,
            hit_tokens=self._hit_tokens,
            counted_tokens=self._counted,
            ideal_tokens=self._ideal_tokens,
            evicted=sum(replica.evicted for replica in self.replicas),
            aged=sum(replica.aged for replica in self.replicas),
            lost=dict(self._lost),
            first_token=FirstToken(
                first.mean, first.at(0.5), first.at(0.95), first.at(0.99), queued.at(0.5), queued.at(0.95)
            ),
            money=self._money(),
        )

    def _best_other(self, mine: Replica, scope: str, keys: Sequence[BlockKey], known: int) -> int:
        """The most blocks that another replica has of this prompt."""
        if not known:
            return 0
        return max(other.depth(scope, keys) for other in self.replicas if other is not mine)

    def _note_losses(self, prompt: int, hit: int, ideal: int, elsewhere: int, served: Served) -> None:
        lost, rules = self._lost, self.settings.rules
        lost[Loss.COLD] += prompt - ideal
        if elsewhere > hit:
            lost[Loss.ELSEWHERE] += elsewhere - hit
        if ideal > elsewhere:
            lost[Loss.EXPIRED if served.lost_to_age else Loss.EVICTED] += ideal - elsewhere
        counted = hit
        if rules is not None:
            counted = rules.reported(hit)
            if counted < hit:
                lost[Loss.ROUNDED if counted else Loss.BELOW_MINIMUM] += hit - counted
        self._counted += counted

    def _note_time(self, replica: Replica, now: float, prompt: int, hit: int, found: int) -> None:
        seconds = self.settings.speed.seconds(prompt - hit, hit - found, found)
        done = max(now, replica.busy_until) + seconds
        replica.busy_until = done
        self._first.add(seconds)
        self._queued.add(done - now)

    def _note_money(self, prompt: int, hit: int, ideal: int, output: int) -> None:
        rules = self.settings.rules
        if rules is not None:
            actual, uncached, best = self._bills
            rules.book(actual, prompt, hit, output)
            uncached.computed += prompt
            uncached.output += output
            rules.book(best, prompt, ideal, output)

    def _money(self) -> Money | None:
        rules = self.settings.rules
        if rules is None:
            return None
        actual, uncached, best = (rules.cost(bill) for bill in self._bills)
        return Money(rules.price.currency, actual, uncached, best)


def merged_keys(keys: list[BlockKey], known: int, count: int) -> tuple[list[BlockKey], int]:
    """Blocks of `count` blocks, a last one of fewer included: a key names all that is before it too."""
    larger = keys[count - 1 :: count]
    if len(keys) % count:
        larger.append(keys[-1])
    return larger, len(larger) if known == len(keys) else known // count


def replay(
    requests: Iterable[TraceRequest], trace_block: int, runs: Iterable[ReplaySettings]
) -> list[Outcome]:
    """Replay a trace, whose blocks hold `trace_block` tokens, under every one of `runs`, reading it once."""
    simulators = [Simulator(settings, trace_block) for settings in runs]
    for request in requests:
        for simulator in simulators:
            simulator.serve(request)
    return [simulator.outcome() for simulator in simulators]
