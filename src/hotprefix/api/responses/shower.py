"""A response as events or as a whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from hotprefix.api.bill import Bill
from hotprefix.api.errors import Problem
from hotprefix.api.responses.draft import Draft
from hotprefix.api.responses.output import Output
from hotprefix.base.clock import Clock
from hotprefix.engine.request import Delta

Keep = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Stores a finished response object and gives it back as it is to be sent."""


class ResponsesShower:
    """`settled` has to be awaited between the last delta and `end` or `whole`."""

    def __init__(self, draft: Draft, output: Output, keep: Keep, clock: Clock) -> None:
        self._draft = draft
        self._output = output
        self._keep = keep
        self._clock = clock
        self._number = 0
        self._final: dict[str, Any] = {}

    def start(self, bill: Bill) -> bytes:
        document = self._draft.document("in_progress", [])
        return self._event("created", response=document) + self._event("in_progress", response=document)

    def show(self, prompt: int, delta: Delta) -> bytes:
        return b"".join(map(self._numbered, self._output.take(delta)))

    async def settled(self, bill: Bill) -> None:
        """The answer is complete: store it, before anybody is told so."""
        document = self._draft.document(
            "incomplete" if self._output.is_cut else "completed",
            self._output.items,
            usage=self._draft.dialect.usage(bill),
        )
        if self._output.is_cut:
            document["incomplete_details"] = {"reason": "max_output_tokens"}
        else:
            document["completed_at"] = int(self._clock.wall())
        self._final = await self._keep(document)

    def end(self, bill: Bill) -> bytes:
        return self._event(self._final["status"], response=self._final)

    def fail(self, problem: Problem) -> bytes:
        error = self._draft.dialect.failure(problem)
        document = self._draft.document("failed", self._output.items, error=error)
        return self._event("failed", response=document)

    def fold(self, prompt: int, delta: Delta) -> None:
        for _ in self._output.take(delta):
            pass  # the items grow with it

    def whole(self, bill: Bill) -> dict[str, Any]:
        return self._final

    def _event(self, kind: str, **fields: Any) -> bytes:
        return self._numbered({"type": f"response.{kind}"} | fields)

    def _numbered(self, event: dict[str, Any]) -> bytes:
        event["sequence_number"] = self._number
        self._number += 1
        return self._draft.dialect.event(event)
