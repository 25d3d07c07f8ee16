"""How a dialect shows an answer: in pieces, or whole."""

from __future__ import annotations

from typing import Any, Protocol

from hotprefix.api.bill import Bill
from hotprefix.api.errors import Problem
from hotprefix.engine.request import Delta


class Shower(Protocol):
    """Turns an answer's deltas into one dialect's bytes. One object for one request.

    A stream is `start`, `show` for each delta, then `end` or `fail`; each returns whole server-sent
    events, or nothing. A whole answer is `fold` for each delta, then `whole`.
    """

    def start(self, bill: Bill) -> bytes:
        """Before the first delta's events. `bill` holds what is known then: nothing was drawn yet."""
        ...

    def show(self, prompt: int, delta: Delta) -> bytes: ...

    def end(self, bill: Bill) -> bytes: ...

    def fail(self, problem: Problem) -> bytes:
        """The status is out already: the error is the stream's last word."""
        ...

    def fold(self, prompt: int, delta: Delta) -> None: ...

    def whole(self, bill: Bill) -> dict[str, Any]: ...
