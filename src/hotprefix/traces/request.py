"""One request of a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.base.ids import BlockKey


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request as a file has it. `at` is in seconds; only differences mean anything.

    `ids` name the blocks of the prompt, the last of which may be ragged; None if the file tells lengths only.
    Ids mean something within their `scope`; whether they are chained does not matter.
    """

    at: float
    scope: str
    ids: Sequence[int] | None
    input: int
    output: int


@dataclass(slots=True)
class TraceRequest:
    """A request with keys: equal keys mean equal scope and equal text up to the end of the block.

    `known` is how many leading blocks some earlier request of the trace had, as a cache without limits would.
    """

    at: float
    scope: str
    keys: list[BlockKey]
    input: int
    output: int
    known: int = 0
