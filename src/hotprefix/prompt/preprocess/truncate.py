"""Truncation of conversations that are too long: oldest turns first, many at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

from hotprefix.prompt.chat import Message
from hotprefix.prompt.preprocess.draft import Draft
from hotprefix.prompt.preprocess.edit import Edit

CountTokens = Callable[[str], int]

_OVERHEAD = 8
"""Tokens that a template puts around a message, generously."""
_LEADING = ("system", "developer")


def turns_to_drop(head: int, turns: Sequence[int], limit: int) -> int:
    """How many of the oldest turns go, so that `head` and the rest have at most `limit` tokens.

    The cut moves in steps of half the room that turns have: it stays where it is for many requests
    of a growing conversation, and each of those finds the prefix of the one before. It depends on
    the conversation alone. The last turn always stays.
    """
    room = max(limit - head, 2)
    total = sum(turns)
    if total <= room:
        return 0
    step = max(room // 2, 1)
    wanted = -(-(total - room) // step) * step
    starts = accumulate(turns)
    return next((n for n, gone in enumerate(starts, 1) if gone >= wanted and n < len(turns)), len(turns) - 1)


class Truncate:
    """Drops the oldest turns of a conversation of more than `limit` tokens; system messages that it
    begins with stay. A turn is a user message and all that follows until the next one."""

    name = "truncate"

    def __init__(self, limit: int, count: CountTokens) -> None:
        self._limit = limit
        self._count = count

    def apply(self, draft: Draft) -> tuple[Draft, Sequence[Edit]]:
        messages = draft.messages
        first = next((i for i, m in enumerate(messages) if m["role"] not in _LEADING), len(messages))
        starts = [first, *(i for i in range(first + 1, len(messages)) if messages[i]["role"] == "user")]
        sizes = [self._size(message) for message in messages]
        tools = self._count(json.dumps(draft.tools, ensure_ascii=False)) if draft.tools else 0
        ends = [*starts[1:], len(messages)]
        turns = [sum(sizes[start:end]) for start, end in zip(starts, ends, strict=True)]
        dropped = turns_to_drop(tools + sum(sizes[:first]), turns, self._limit)
        if not dropped:
            return draft, ()
        end = starts[dropped]
        edits = [_gone(self.name, number, messages[number]) for number in range(first, end)]
        kept = replace(
            draft,
            messages=(*messages[:first], *messages[end:]),
            blocks=(*draft.blocks[:first], *draft.blocks[end:]),
        )
        return kept, edits

    def _size(self, message: Message) -> int:
        calls = message.get("tool_calls")
        text = str(message.get("content") or "") + (json.dumps(calls, ensure_ascii=False) if calls else "")
        return _OVERHEAD + self._count(text)


def _gone(step: str, number: int, message: Message) -> Edit:
    return Edit(step, f"messages[{number}]", 0, str(message.get("content") or ""), "")
