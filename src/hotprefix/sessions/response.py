"""A response as it is stored."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """One turn. Times are in Unix seconds.

    `document` is the response object as it was sent: output items, instructions, tools, usage, status.
    `input_items` are this turn's own; `answer` is the text as it was drawn, where the output items
    don't say it byte for byte (tool calls). `depth` counts the turns of its chain, itself included;
    `retention` is how long it is kept after its last use.
    """

    response_id: str
    tenant: str
    model: str
    created: float
    retention: float
    document: dict[str, Any]
    input_items: list[dict[str, Any]]
    answer: str | None = None
    previous_id: str | None = None
    depth: int = 1
    expires: float = field(default=0.0)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What is left of a response that is kept no longer."""

    response_id: str
    depth: int
    expired: float


@dataclass(frozen=True, slots=True)
class Chain:
    """The turns behind a `previous_response_id`, oldest first; or why they can't be had.

    `missing` is the first id, going back, that is not there; `buried` what is remembered of it.
    """

    responses: tuple[StoredResponse, ...]
    missing: str | None = None
    buried: Tombstone | None = None
