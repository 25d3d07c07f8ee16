"""Choices → strategies, within what server, model and arena allow."""

from __future__ import annotations

from dataclasses import replace

from hotprefix.base.errors import InvalidRequest
from hotprefix.engine.strategy.base import Bounds, Strategy
from hotprefix.engine.strategy.choice import Span, StrategyChoice, StrategyName
from hotprefix.engine.strategy.cutting import CuttingStrategy
from hotprefix.engine.strategy.dynamic import DynamicStrategy
from hotprefix.engine.strategy.keepers import Keepers
from hotprefix.engine.strategy.mixed import MixedCutter
from hotprefix.engine.strategy.router import Router
from hotprefix.engine.strategy.settings import DEFAULT_WINDOW, StrategySettings
from hotprefix.engine.strategy.static import StaticStrategy
from hotprefix.engine.strategy.window import WindowCutter

PARAM = "kv_strategy"
_LEAST_BLOCKS = 4
_TRUSTED_SHARE = 0.25
_UNTRUSTED = frozenset({"keydiff", "norm"})
"""Judges whose key tokens cost more than they give; see `docs/STRATEGIES.md`."""
_PARTS = {
    StrategyName.WINDOW: {"window", "sinks", "keys", "pin"},
    StrategyName.MIXED: {"window", "sinks", "recent", "pin"},
}
"""What can be asked of strategies that cut; the others have no parts."""


class Strategies:
    """Every strategy that requests can have here. `unmovable` says why caches can't be cut, if so."""

    def __init__(self, settings: StrategySettings, bounds: Bounds, unmovable: str = "") -> None:
        self._settings = settings
        self._bounds = bounds
        self._unmovable = unmovable
        self._default = self._make(StrategyChoice())
        if settings.window is not None and not unmovable:
            # Said at the start, not to everyone who asks for a window.
            self._window(StrategyChoice())

    def choose(self, choice: StrategyChoice | None) -> Strategy:
        """The strategy of a request. Raises `InvalidRequest` for one that can't be had."""
        return self._default if choice is None else self._make(choice)

    def _make(self, choice: StrategyChoice) -> Strategy:
        name = self._settings.name if choice.name is None else choice.name
        foreign = choice.parts - _PARTS.get(name, set())
        if foreign:
            raise _refused(f"{min(foreign)}: '{name}' has no such part")
        if name is StrategyName.DYNAMIC:
            return DynamicStrategy(self._bounds)
        if name is StrategyName.STATIC:
            return StaticStrategy(self._bounds)
        if self._unmovable:
            raise _refused(f"'{name}' can't be had: {self._unmovable}")
        budget = self._window(choice)
        if name is StrategyName.WINDOW:
            return CuttingStrategy(name, self._window_cutter(choice, budget), self._settings.longest)
        return CuttingStrategy(name, self._mixed_cutter(choice, budget), self._settings.longest)

    def _window_cutter(self, choice: StrategyChoice, budget: int) -> WindowCutter:
        share = self._settings.keys if choice.keys is None else choice.keys
        if share is None:
            share = 0.0 if self._settings.judge in _UNTRUSTED else _TRUSTED_SHARE
        if share > _TRUSTED_SHARE:
            raise _refused(f"keys: at most a quarter of the window can be key tokens, not {share:g}")
        keepers = self._keepers(choice, budget // 2)
        return WindowCutter(budget, keepers, int(share * budget), self._bounds.block_size)

    def _mixed_cutter(self, choice: StrategyChoice, budget: int) -> MixedCutter:
        recent = self._settings.recent if choice.recent is None else choice.recent
        if recent > budget // 2:
            raise _refused(f"recent: {recent} tokens are more than half of the window of {budget}")
        router = Router(self._settings.experts, self._settings.capacity)
        keepers = self._keepers(choice, budget // 4)
        return MixedCutter(budget, keepers, recent, router, self._bounds.block_size)

    def _window(self, choice: StrategyChoice) -> int:
        """Whole blocks, and no more than half of the arena: a cut needs room for copies."""
        size = self._bounds.block_size
        most = min(self._bounds.context, self._bounds.arena_tokens // 2) // size * size
        least = _LEAST_BLOCKS * size
        wanted = self._settings.window if choice.window is None else choice.window
        if wanted is None:
            wanted = min(DEFAULT_WINDOW, most)
        if not least <= wanted <= most:
            raise _refused(
                f"window: {wanted} tokens can't be had; here it is {least} to {most} "
                "(the model's context, and half of the arena)"
            )
        return wanted // size * size

    def _keepers(self, choice: StrategyChoice, room: int) -> Keepers:
        sinks = self._settings.sinks if choice.sinks is None else choice.sinks
        keepers = Keepers(sinks, choice.pins)
        if keepers.tokens > room:
            raise _refused(f"pin: sinks and pinned spans have {keepers.tokens} tokens; at most {room} fit")
        if not choice.pins_system or not choice.system:
            return keepers
        # The system prompt stays as far as there is room; nobody asked for it by its length.
        system: Span = (0, choice.system)
        whole = replace(keepers, pins=(*choice.pins, system))
        if whole.tokens > room:
            system = (0, max(sinks, room - keepers.tokens + sinks))
        return replace(keepers, pins=(*choice.pins, system))


def _refused(reason: str) -> InvalidRequest:
    return InvalidRequest(f"The KV strategy asked for is not possible: {reason}.", param=PARAM)
