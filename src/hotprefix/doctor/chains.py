"""Turns of Responses conversations that a file holds, so that `previous_response_id` can be followed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from hotprefix.sessions.response import StoredResponse

_MOST_TURNS = 1_000


class Chains:
    """The newest `limit` responses, by id."""

    def __init__(self, limit: int = 4_096) -> None:
        self._limit = limit
        self._turns: OrderedDict[str, StoredResponse] = OrderedDict()

    def remember(self, turn: StoredResponse) -> None:
        """Keep a turn; one with the same id is replaced."""
        self._turns[turn.response_id] = turn
        self._turns.move_to_end(turn.response_id)
        if len(self._turns) > self._limit:
            self._turns.popitem(last=False)

    def behind(self, response_id: str) -> tuple[Sequence[StoredResponse], bool]:
        """The turns that end with `response_id`, oldest first, and whether they are all there."""
        turns: list[StoredResponse] = []
        wanted: str | None = response_id
        while wanted is not None and len(turns) < _MOST_TURNS:
            found = self._turns.get(wanted)
            if found is None:
                return turns[::-1], False
            turns.append(found)
            wanted = found.previous_id
        return turns[::-1], wanted is None
