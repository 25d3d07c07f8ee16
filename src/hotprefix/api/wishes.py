"""What a request's headers ask of its prompt, whatever its dialect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from hotprefix.base.errors import InvalidRequest
from hotprefix.prompt.preprocess.catalogue import StepName, parse_steps

PREPROCESS_HEADER = "x-hotprefix-preprocess"
CACHE_HEADER = "x-hotprefix-cache"


@dataclass(frozen=True, slots=True)
class Wishes:
    """`preprocess` are the steps to run, None for the server's own; `cache` is a named cache, if any."""

    preprocess: tuple[StepName, ...] | None = None
    cache: str = ""


_CURRENT: ContextVar[Wishes | None] = ContextVar("hotprefix.wishes", default=None)


@contextmanager
def wishing(wishes: Wishes) -> Iterator[None]:
    """While a request is answered, its wishes are the current ones."""
    token = _CURRENT.set(wishes)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_wishes() -> Wishes:
    """Those of the request that is being answered in this task."""
    return _CURRENT.get() or Wishes()


def wishes_of(scope: Scope) -> Wishes:
    """Raises `InvalidRequest` for a step that there is not."""
    headers = Headers(scope=scope)
    wanted = headers.get(PREPROCESS_HEADER)
    try:
        steps = None if wanted is None else parse_steps(wanted)
    except ValueError as error:
        raise InvalidRequest(
            f"Invalid value for the header '{PREPROCESS_HEADER}': {error}.", param=PREPROCESS_HEADER
        ) from None
    return Wishes(steps, headers.get(CACHE_HEADER, "").strip())
