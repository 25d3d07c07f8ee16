"""All strategies that a vendor's rules allow, over one trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from hotprefix.doctor.plan.errors import PlanError
from hotprefix.doctor.plan.provider.sharing import Sharing
from hotprefix.doctor.plan.provider.strategy import CacheMode, Play, Strategy, Tokens
from hotprefix.profiles.pattern import best_pattern
from hotprefix.profiles.price import Price, price_of
from hotprefix.profiles.profile import Profile
from hotprefix.traces.lines import Advance, nothing
from hotprefix.traces.source import TraceSource

_CHEAPER = Decimal("0.005")
"""One more marker has to save this part of the cost, or it is left out."""


@dataclass(frozen=True, slots=True)
class ProviderWish:
    """`implicit_lifetime` in seconds is a guess: vendors promise none. `delay`: see `Strategy`."""

    profile: Profile
    model: str
    day: date
    implicit_lifetime: float = 300.0
    delay: float = 1.0


@dataclass(frozen=True, slots=True)
class StrategyCost:
    """What a strategy comes to."""

    strategy: Strategy
    tokens: Tokens
    cost: Decimal

    @property
    def hit_rate(self) -> float:
        """Prompt tokens read, of all."""
        total = self.tokens.computed + self.tokens.read + self.tokens.written
        return self.tokens.read / total if total else 0.0


@dataclass(frozen=True, slots=True)
class ProviderPlan:
    """`costs` are sorted, the cheapest first; `uncached` is what no cache costs."""

    wish: ProviderWish
    currency: str
    requests: int
    costs: tuple[StrategyCost, ...]
    uncached: Decimal
    notes: tuple[str, ...]

    @property
    def best(self) -> StrategyCost:
        """The cheapest; of those that cost as good as the same, the one with the fewest markers."""
        least = self.costs[0].cost
        near = [one for one in self.costs if one.cost <= least * (1 + _CHEAPER)]
        return min(near, key=lambda one: (one.strategy.markers, one.cost))


def plan_provider(source: TraceSource, wish: ProviderWish, advance: Advance = nothing) -> ProviderPlan:
    """Read the trace twice: to see where requests part, and to bill. Raises `BrokenTrace`, `PlanError`."""
    if not source.has_identity:
        raise PlanError(
            f"{source.files[0]} does not say which prompts are alike, so nothing can be said of caches. Give "
            "a trace with block hashes."
        )
    price = price_of(wish.profile, wish.model, wish.day)
    strategies = list(_strategies(wish, price))
    most = max((strategy.shared for strategy in strategies), default=0)
    minimum = min((one.minimum for one in strategies if one.mode is CacheMode.EXPLICIT), default=0)
    sharing = Sharing(source.block_size)
    if most:
        for request in source.requests(advance):
            sharing.note(request)
    plays = [Play(strategy, source.block_size, wish.delay) for strategy in strategies]
    requests = 0
    for request in source.requests(advance):
        places = sharing.places(request, most, minimum) if most else []
        for play in plays:
            play.serve(request, places)
        requests += 1
    costs = sorted(
        (StrategyCost(play.strategy, play.tokens, play.cost(price)) for play in plays),
        key=lambda one: one.cost,
    )
    uncached = next(one.cost for one in costs if one.strategy.mode is CacheMode.NONE)
    return ProviderPlan(wish, price.currency, requests, tuple(costs), uncached, tuple(_notes(wish)))


def _strategies(wish: ProviderWish, price: Price) -> Iterator[Strategy]:
    profile, model = wish.profile, wish.model
    yield Strategy(CacheMode.NONE, price.input, price.input)
    if (implicit := profile.implicit) is not None:
        yield Strategy(
            CacheMode.IMPLICIT,
            price.read_implicit,
            price.input,
            implicit.minimum_for(model),
            implicit.quantum,
            wish.implicit_lifetime,
        )
    if not _is_listed(wish):
        return
    if (explicit := profile.explicit) is not None:
        for ttl, lifetime in explicit.ttls.items():
            for markers in range(1, explicit.max_markers + 1):
                for has_tail in (True, False):
                    yield Strategy(
                        CacheMode.EXPLICIT,
                        price.read_explicit,
                        price.write.get(ttl, price.input),
                        explicit.minimum_for(model),
                        lifetime=float(lifetime),
                        shared=markers - has_tail,
                        has_tail=has_tail,
                        ttl=ttl,
                    )
    if (session := profile.session) is not None:
        write = next(iter(price.write.values()), price.input)
        yield Strategy(
            CacheMode.SESSION, price.read_session, write, session.minimum, lifetime=float(session.ttl_seconds)
        )


def _is_listed(wish: ProviderWish) -> bool:
    listed = wish.profile.explicit_models
    return not listed or best_pattern(listed, wish.model) is not None


def _notes(wish: ProviderWish) -> Iterator[str]:
    profile = wish.profile
    if profile.implicit is not None:
        yield (
            f"The implicit cache is taken to keep prefixes for {wish.implicit_lifetime:g} s and to find them "
            "always; vendors promise neither."
        )
    if not _is_listed(wish):
        yield f"{wish.model} is not on the list of models with explicit and session caches of {profile.name}."
        return
    if profile.explicit is not None:
        yield (
            "Markers stand where, with hindsight, requests part. Where content blocks end is not in a trace, "
            f"so the look-back of {profile.explicit.lookback} blocks is taken to reach."
        )
    if profile.session is not None:
        yield "The session cache reads every earlier turn that begins the prompt; it needs the Responses API."
