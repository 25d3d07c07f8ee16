"""Which strategies a server can give."""

from __future__ import annotations

import pytest

from hotprefix.base.errors import InvalidRequest
from hotprefix.engine.strategy.base import Bounds
from hotprefix.engine.strategy.catalogue import Strategies
from hotprefix.engine.strategy.choice import StrategyChoice, StrategyName
from hotprefix.engine.strategy.mixed import MixedCutter
from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.engine.strategy.window import WindowCutter

BOUNDS = Bounds(context=8192, arena_tokens=20_000, block_size=32)
WINDOW = StrategyName.WINDOW


def window_of(choice: StrategyChoice, settings: StrategySettings | None = None) -> WindowCutter:
    cutter = Strategies(settings or StrategySettings(), BOUNDS).choose(choice).cutter
    assert isinstance(cutter, WindowCutter)
    return cutter


def test_without_a_wish_it_is_the_servers() -> None:
    assert Strategies(StrategySettings(), BOUNDS).choose(None).name is StrategyName.DYNAMIC
    strategies = Strategies(StrategySettings(WINDOW), BOUNDS)
    assert strategies.choose(None).name is strategies.choose(StrategyChoice()).name is WINDOW


def test_windows_are_whole_blocks() -> None:
    assert window_of(StrategyChoice(WINDOW, window=800)).budget == 800
    assert window_of(StrategyChoice(WINDOW, window=799)).budget == 768
    assert window_of(StrategyChoice(WINDOW)).budget == 2048


def test_a_small_arena_has_a_small_default_window() -> None:
    strategies = Strategies(StrategySettings(WINDOW), Bounds(8192, 1000, 32))
    cutter = strategies.choose(None).cutter
    assert cutter is not None and cutter.budget == 480


@pytest.mark.parametrize("judge,keys", [("keydiff", 0), ("norm", 0), ("attention", 192), ("some.npz", 192)])
def test_key_tokens_need_a_judge_that_is_worth_its_place(judge: str, keys: int) -> None:
    settings = StrategySettings(scorer=judge)
    assert window_of(StrategyChoice(WINDOW, window=768), settings).keys == keys
    assert window_of(StrategyChoice(WINDOW, window=768, keys=0.125), settings).keys == 96


def test_auto_judges_by_attention_only_where_the_server_cuts() -> None:
    assert StrategySettings(WINDOW).judge == StrategySettings(StrategyName.MIXED).judge == "attention"
    assert StrategySettings().judge == StrategySettings(StrategyName.STATIC).judge == "keydiff"


def test_the_system_prompt_stays_as_far_as_it_fits() -> None:
    short = window_of(StrategyChoice(WINDOW, window=512, system=100)).keepers
    assert short.tokens == 100
    long = window_of(StrategyChoice(WINDOW, window=512, system=4000)).keepers
    assert long.tokens == 256
    beside = window_of(StrategyChoice(WINDOW, window=512, system=4000, pins=((5000, 5100),))).keepers
    assert beside.tokens == 256
    assert window_of(StrategyChoice(WINDOW, window=512, system=100, pins_system=False)).keepers.tokens == 4


def test_mixed_has_a_router_of_the_servers_experts() -> None:
    settings = StrategySettings(experts=3, capacity=2.0)
    cutter = Strategies(settings, BOUNDS).choose(StrategyChoice(StrategyName.MIXED, recent=100)).cutter
    assert isinstance(cutter, MixedCutter)
    assert (cutter.recent, cutter.router.experts, cutter.router.capacity) == (100, 3, 2.0)


@pytest.mark.parametrize(
    "choice,reason",
    [
        (StrategyChoice(WINDOW, window=96), "128 to 8192"),
        (StrategyChoice(WINDOW, window=8193), "128 to 8192"),
        (StrategyChoice(WINDOW, window=512, keys=0.3), "at most a quarter"),
        (StrategyChoice(WINDOW, window=512, sinks=257), "at most 256 fit"),
        (StrategyChoice(WINDOW, window=512, pins=((0, 300),)), "have 300 tokens"),
        (StrategyChoice(StrategyName.MIXED, window=512, recent=257), "more than half"),
        (StrategyChoice(StrategyName.MIXED, window=512, pins=((9, 200),)), "at most 128 fit"),
        (StrategyChoice(StrategyName.DYNAMIC, window=512), "window: 'dynamic' has no such part"),
        (StrategyChoice(StrategyName.STATIC, pins_system=False), "pin: 'static' has no such part"),
        (StrategyChoice(WINDOW, recent=64), "recent: 'window' has no such part"),
        (StrategyChoice(StrategyName.MIXED, keys=0.1), "keys: 'mixed' has no such part"),
    ],
)
def test_what_is_not_possible_is_refused(choice: StrategyChoice, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as caught:
        Strategies(StrategySettings(), BOUNDS).choose(choice)
    assert caught.value.param == "kv_strategy"


def test_where_keys_can_not_be_moved_only_what_keeps_all_is_there() -> None:
    strategies = Strategies(StrategySettings(), BOUNDS, "keys are u8")
    assert strategies.choose(StrategyChoice(StrategyName.STATIC)).cutter is None
    for name in (WINDOW, StrategyName.MIXED):
        with pytest.raises(InvalidRequest, match="keys are u8"):
            strategies.choose(StrategyChoice(name))
    with pytest.raises(InvalidRequest, match="keys are u8"):
        Strategies(StrategySettings(WINDOW), BOUNDS, "keys are u8")


def test_a_window_of_the_server_that_can_not_be_had_is_told_at_the_start() -> None:
    with pytest.raises(InvalidRequest, match="128 to 8192"):
        Strategies(StrategySettings(window=10_000), BOUNDS)
    # Where nothing can be cut nobody will ask for it.
    Strategies(StrategySettings(window=10_000), BOUNDS, "keys are u8")
