"""Reading a text as a server does that bounds a sequence's cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from hotprefix.base.errors import InvalidRequest, LogicError
from hotprefix.base.ids import BlockKey
from hotprefix.cache.base import Room
from hotprefix.cache.holding import Holding
from hotprefix.cache.rules import ReuseRules
from hotprefix.cache.uncached import UncachedCache
from hotprefix.engine.runner import Row
from hotprefix.engine.strategy.base import Cutter
from hotprefix.engine.strategy.choice import StrategyChoice, parse_choice
from hotprefix.engine.strategy.compactor import Compactor
from hotprefix.engine.strategy.kit import strategy_kit
from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.engine.strategy.tally import Tally
from hotprefix.keys.chain import TokenHistory
from hotprefix.kv.pool import BlockPool
from hotprefix.quality.metrics import Logits
from hotprefix.quality.model import CHUNK, SCORED, MeasuredModel

JUDGE = "attention"
"""By which a server judges whose own strategy cuts caches."""


def cutting_choice(text: str) -> StrategyChoice:
    """A strategy as a request's header asks for it. Raises `InvalidRequest` if it is none that cuts."""
    try:
        choice = parse_choice(text)
    except ValueError as error:
        raise InvalidRequest(f"--strategy {text}: {error}.") from error
    if choice.name is None or not choice.name.cuts:
        raise InvalidRequest(f"--strategy {text}: it keeps every token, so there is nothing to measure.")
    return choice


class CuttingReader:
    """Reads texts with strategies in the arena of a model that tells attention."""

    def __init__(self, model: MeasuredModel, context: int) -> None:
        self._model = model
        size = model.format.block_size
        # The last block is the runner's.
        self._cache = UncachedCache(BlockPool(model.arena.blocks - 1), ReuseRules(size))
        settings = StrategySettings(scorer=JUDGE)
        self._kit = strategy_kit(settings, context, model.arena, self._cache, lambda: model.facts.rotary)

    @property
    def block_size(self) -> int:
        """Tokens of a block."""
        return self._cache.block_size

    def cutter(self, choice: StrategyChoice) -> Cutter:
        """Raises `InvalidRequest` for a strategy that can't be had here."""
        cutter = self._kit.strategies.choose(choice).cutter
        if cutter is None:
            raise LogicError(f"{choice.name} keeps every token")
        return cutter

    @contextmanager
    def text(self, cutter: Cutter) -> Iterator[CutText]:
        """A text that begins with nothing in the cache; its blocks are given back behind the `with`."""
        history = TokenHistory(BlockKey(bytes(32)), (), self._cache.block_size)
        holding = self._cache.open(history, self._cache.plan(history, Room(0, 0)))
        if holding is None or self._kit.compactor is None:
            raise LogicError("a text was begun where none can be cut")
        try:
            yield CutText(self._model, self._cache, self._kit.compactor, holding, cutter)
        finally:
            self._cache.close(holding)


class CutText:
    """A text whose cache is cut whenever it is full."""

    def __init__(
        self,
        model: MeasuredModel,
        cache: UncachedCache,
        compactor: Compactor,
        holding: Holding,
        cutter: Cutter,
    ) -> None:
        self._model = model
        self._cache = cache
        self._compactor = compactor
        self._holding = holding
        self._cutter = cutter
        self._tally = Tally()

    @property
    def blocks(self) -> int:
        """Blocks that it takes."""
        return len(self._holding.table)

    def read(self, tokens: Sequence[int]) -> None:
        """Compute tokens."""
        for part in self._parts(tokens, CHUNK):
            self._model.runner.run([self._row(part)])
            self._note(part)

    def score(self, tokens: Sequence[int]) -> Logits:
        """Compute tokens; logits behind each of them."""
        found = []
        for part in self._parts(tokens, SCORED):
            row, runner = self._row(part), self._model.runner
            # A step of one token takes another kernel, and an idle row beside it.
            found.append((runner.score(row) if len(part) > 1 else runner.run([row])).copy())
            self._note(part)
        return np.concatenate(found)

    def make_room(self, tokens: int) -> None:
        """Cut as often as it takes for so many more to fit."""
        while self._holding.cached + tokens > self._cutter.budget:
            self._compactor.compact(self._holding, self._cutter, self._tally)

    def ask(self, question: Sequence[int]) -> Logits:
        """Logits behind a question for which there is room, [vocabulary]; it leaves no trace."""
        logits: Logits = self._model.runner.run([self._row(question)])[0]
        return logits.copy()

    def _parts(self, tokens: Sequence[int], most: int) -> Iterator[Sequence[int]]:
        at = 0
        while at < len(tokens):
            self.make_room(1)
            end = at + min(most, self._cutter.budget - self._holding.cached)
            yield tokens[at:end]
            at = end

    def _row(self, tokens: Sequence[int]) -> Row:
        holding = self._holding
        if not self._cache.grow(holding, holding.cached + len(tokens)):
            raise LogicError("the arena has no room for a window")
        return Row(tokens, holding.cached, holding.table, True)

    def _note(self, tokens: Sequence[int]) -> None:
        runner = self._model.runner
        self._holding.computed += len(tokens)
        self._tally.note(runner.attention()[0], runner.looked_back(len(tokens)))
