"""Conversations that may be longer than the window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotprefix.api.prompting import Prompting
from hotprefix.api.responses.transcript import Transcript
from hotprefix.base.errors import ContextLengthExceeded
from hotprefix.modes.turn import TurnRequest
from hotprefix.sessions.window import Cut, Sized, Window, cut

TRUNCATED_HEADER = b"x-hotprefix-truncated"
_WHOLE = frozenset[int]()


class Fitting:
    """Cuts transcripts to a window; `tools` and `variables` are the request's."""

    def __init__(
        self,
        prompting: Prompting,
        tools: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
        tenant: str,
    ) -> None:
        self._prompting = prompting
        self._tools = tools
        self._variables = variables
        self._tenant = tenant

    async def whole(self, transcript: Transcript, warnings: Sequence[str]) -> TurnRequest:
        """All of it. Raises `ContextLengthExceeded`."""
        return await self._turn(transcript, _WHOLE, warnings)

    async def cut(
        self, transcript: Transcript, warnings: Sequence[str], window: Window
    ) -> tuple[TurnRequest, Cut]:
        """With its oldest turns left out if it is too long. Raises `ContextLengthExceeded`."""
        try:
            turn = await self.whole(transcript, warnings)
            if len(turn.prompt.token_ids) <= window.high:
                return turn, Cut()
        except ContextLengthExceeded:
            turn = None
        sizes, opening = await self._sizes(transcript)
        left_out = cut(sizes, window, opening)
        if left_out.dropped or turn is None:
            turn = await self._turn(transcript, left_out.dropped, warnings)
        return turn, left_out

    async def _turn(
        self, transcript: Transcript, dropped: frozenset[int], warnings: Sequence[str]
    ) -> TurnRequest:
        conversation = transcript.conversation(dropped, warnings)
        return await self._prompting.turn(conversation, self._tools, self._variables, self._tenant)

    async def _sizes(self, transcript: Transcript) -> tuple[list[Sized], int]:
        """A message reaches from the end of the one before it to its own; what is left is the opening."""
        conversation = transcript.conversation(_WHOLE, ())
        prompt = await self._prompting.measured(conversation, self._tools, self._variables, self._tenant)
        ends: list[int] = []
        at = 0
        for group in conversation.blocks:
            at += len(group)
            ends.append(prompt.spans[at - 1].end_token if at else 0)
        starts = [0, *ends[:-1]]
        sizes = [
            Sized(message["role"], end - start)
            for message, start, end in zip(conversation.messages, starts, ends, strict=True)
        ]
        return sizes, len(prompt.token_ids) - ends[-1]


def truncated_header(left_out: Cut) -> list[tuple[bytes, bytes]]:
    """Tells what was left out, if anything was."""
    if not left_out.dropped:
        return []
    text = f"turns={left_out.turns}, messages={len(left_out.dropped)}, tokens={left_out.tokens}"
    return [(TRUNCATED_HEADER, text.encode())]
