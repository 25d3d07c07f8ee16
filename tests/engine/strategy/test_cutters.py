"""What stays when a cache is full."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hotprefix.cache.recut import Places
from hotprefix.engine.strategy.base import CachedTokens, Cutter
from hotprefix.engine.strategy.keepers import Keepers, evicted_tokens
from hotprefix.engine.strategy.mixed import MixedCutter
from hotprefix.engine.strategy.router import Router
from hotprefix.engine.strategy.window import WindowCutter

SIZE = 8


class Run:
    """A sequence that goes on and on; token i of it is worth `worth[i]` to each of three layers."""

    def __init__(self, cutter: Cutter, seed: int = 0) -> None:
        self.cutter = cutter
        self.worth = np.random.default_rng(seed).standard_normal((3, 4000)).astype(np.float32)
        self.origins: NDArray[np.int64] = np.arange(cutter.budget, dtype=np.int64)
        self.length = cutter.budget

    def cut(self) -> Places:
        """Cut, fill up again; the origins that were dropped."""
        kept = self.cutter.keep(
            CachedTokens(self.origins, lambda places: self.worth[:, self.origins[places]])
        )
        assert (np.diff(kept) > 0).all()
        dropped = np.setdiff1d(self.origins, self.origins[kept])
        assert len(dropped) > 0 and len(dropped) % SIZE == 0
        more = np.arange(self.length, self.length + len(dropped))
        self.origins = np.concatenate((self.origins[kept], more))
        self.length += len(dropped)
        return dropped


def window(budget: int = 128, keys: int = 0, keepers: Keepers | None = None) -> WindowCutter:
    return WindowCutter(budget, keepers or Keepers(4), keys, SIZE)


@given(
    budget=st.sampled_from([64, 128, 256]),
    share=st.sampled_from([0.0, 0.1, 0.25]),
    sinks=st.integers(0, 9),
    pin=st.tuples(st.integers(0, 100), st.integers(1, 16)),
    cuts=st.integers(1, 30),
    seed=st.integers(0, 5),
)
@settings(max_examples=100, deadline=None)
def test_a_window_is_sinks_pins_keys_and_a_gapless_run(
    budget: int, share: float, sinks: int, pin: tuple[int, int], cuts: int, seed: int
) -> None:
    keepers = Keepers(sinks, ((pin[0], sum(pin)),))
    keys = int(share * budget)
    run = Run(window(budget, keys, keepers), seed)
    for _ in range(cuts):
        dropped = run.cut()
        assert not keepers.among(dropped).any()
    loose = run.origins[~keepers.among(run.origins)]
    run_starts = np.flatnonzero(np.diff(run.origins) > 1)
    tail = run.origins[run_starts[-1] + 1 :] if len(run_starts) else run.origins
    assert tail[-1] == run.length - 1
    older = loose[loose < tail[0]]
    assert len(older) <= keys
    fixed = keepers.among(np.arange(run.length)) & ~np.isin(np.arange(run.length), run.origins)
    assert not fixed.any(), "a pinned token has gone"


def test_without_keys_the_oldest_tenth_goes() -> None:
    run = Run(window(128))
    assert run.cut().tolist() == list(range(4, 20))
    assert run.cut().tolist() == list(range(20, 36))


def test_key_tokens_are_the_best_of_what_would_have_gone() -> None:
    run = Run(window(128, keys=32))
    for _ in range(12):
        run.cut()
    first_of_run = run.origins[np.flatnonzero(np.diff(run.origins) > 1)[-1] + 1]
    mean = run.worth.mean(axis=0)
    keys = run.origins[(run.origins >= 4) & (run.origins < first_of_run)]
    gone = np.setdiff1d(np.arange(4, first_of_run), keys)
    assert len(keys) == 32
    # Keys are taken in one after the other, so they need not be the very best of all.
    assert np.median(mean[keys]) > np.quantile(mean[gone], 0.75)


@pytest.mark.parametrize("judged,tokens", [(1, 8), (80, 8), (81, 16), (1000, 104)])
def test_a_tenth_in_whole_blocks(judged: int, tokens: int) -> None:
    assert evicted_tokens(judged, SIZE) == tokens


@pytest.mark.parametrize(
    "sinks,pins,tokens", [(4, (), 4), (4, ((2, 6),), 6), (0, ((5, 9), (7, 12)), 7), (4, ((10, 11),), 5)]
)
def test_keepers_are_counted_once(sinks: int, pins: tuple[tuple[int, int], ...], tokens: int) -> None:
    keepers = Keepers(sinks, pins)
    assert keepers.tokens == tokens == int(keepers.among(np.arange(100)).sum())


def test_mixed_keeps_sinks_pins_and_the_last_and_drops_the_worst() -> None:
    cutter = MixedCutter(128, Keepers(4, ((50, 54),)), 20, Router(experts=1, capacity=1.0), SIZE)
    run = Run(cutter)
    run.worth[1:] = run.worth[0]
    dropped = run.cut()
    assert len(dropped) == 16
    judged = np.setdiff1d(np.arange(4, 108), np.arange(50, 54))
    worst = judged[np.argsort(run.worth[0, judged])[:16]]
    assert sorted(worst) == dropped.tolist()
    for _ in range(20):
        run.cut()
    assert {0, 1, 2, 3, 50, 51, 52, 53} <= set(run.origins.tolist())


def test_mixed_keeps_the_very_last_whatever_it_is_worth() -> None:
    """A pass may begin with it again, which writes it at the end of the cache."""
    run = Run(MixedCutter(64, Keepers(0, ()), 0, Router(experts=1, capacity=1.0), SIZE))
    run.worth[:, 63] = -100.0
    assert 63 not in run.cut()


class TestRouter:
    def test_an_expert_claims_what_only_its_layers_need(self) -> None:
        importance = np.zeros((8, 40), dtype=np.float32)
        importance += np.linspace(1, 0, 40, dtype=np.float32)
        # Worth nothing to seven layers, everything to one.
        importance[:, 39] = -1
        importance[5, 39] = 9
        mean = np.argsort(-importance.mean(axis=0))[:16]
        assert 39 not in mean
        assert 39 in Router(experts=8, capacity=1.2).choose(importance, 16)

    @given(
        layers=st.integers(1, 9),
        tokens=st.integers(1, 50),
        experts=st.integers(1, 12),
        capacity=st.sampled_from([0.5, 1.0, 1.2, 4.0]),
        data=st.data(),
    )
    def test_it_gives_as_many_as_were_asked_for(
        self, layers: int, tokens: int, experts: int, capacity: float, data: st.DataObject
    ) -> None:
        count = data.draw(st.integers(0, tokens))
        importance = np.random.default_rng(tokens).standard_normal((layers, tokens)).astype(np.float32)
        chosen = Router(experts, capacity).choose(importance, count)
        assert len(chosen) == count
        assert (np.diff(chosen) > 0).all()

    def test_one_loud_layer_does_not_decide_alone(self) -> None:
        importance = np.zeros((4, 10), dtype=np.float32)
        importance[:3, :5] = 1
        importance[3, 5:] = 1000
        chosen = Router(experts=1, capacity=1.0).choose(importance, 5)
        assert chosen.tolist() == [0, 1, 2, 3, 4]
