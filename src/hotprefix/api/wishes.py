"""What a request's headers ask of its prompt, whatever its dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TypeVar

from starlette.datastructures import Headers
from starlette.types import Scope

from hotprefix.api.strategy_wish import STRATEGY_HEADER
from hotprefix.base.errors import InvalidRequest
from hotprefix.engine.strategy.choice import StrategyChoice, parse_choice
from hotprefix.prompt.preprocess.catalogue import StepName, parse_steps

_T = TypeVar("_T")
PREPROCESS_HEADER = "x-hotprefix-preprocess"
CACHE_HEADER = "x-hotprefix-cache"
KEEP_HEADER = "x-hotprefix-keep"
KEEP_SHORT = "short"
"""What the header can say: keep the prompt at once, however short it is."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """`preprocess` are the steps to run, None for the server's own; `cache` is a named cache, if any;
    `strategy` says how the request's own cache is kept, None for the server's way; with `keeps_short` short
    prompts are kept at once."""

    preprocess: tuple[StepName, ...] | None = None
    cache: str = ""
    strategy: StrategyChoice | None = None
    keeps_short: bool = False


_CURRENT: ContextVar[Wishes | None] = ContextVar("hotprefix.wishes", default=None)


@contextmanager
def wishing(wishes: Wishes) -> Iterator[None]:
    """While a request is answered, its wishes are the current ones."""
    token = _CURRENT.set(wishes)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def wish_strategy(choice: StrategyChoice | None) -> None:
    """What a body says of the strategy goes before the header, until the end of the request's `wishing`."""
    if choice is not None:
        _CURRENT.set(replace(current_wishes(), strategy=choice))


def current_wishes() -> Wishes:
    """Those of the request that is being answered in this task."""
    return _CURRENT.get() or Wishes()


def wishes_of(scope: Scope) -> Wishes:
    """Raises `InvalidRequest` for what a header can't say."""
    headers = Headers(scope=scope)
    steps = _parsed(headers, PREPROCESS_HEADER, parse_steps)
    strategy = _parsed(headers, STRATEGY_HEADER, parse_choice)
    keep = _parsed(headers, KEEP_HEADER, _keep)
    return Wishes(steps, headers.get(CACHE_HEADER, "").strip(), strategy, keep is not None)


def _keep(text: str) -> str:
    if text.strip().lower() != KEEP_SHORT:
        raise ValueError(f"it can say '{KEEP_SHORT}', and no more")
    return KEEP_SHORT


def _parsed(headers: Headers, name: str, parse: Callable[[str], _T]) -> _T | None:
    text = headers.get(name)
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise InvalidRequest(f"Invalid value for the header '{name}': {error}.", param=name) from None
