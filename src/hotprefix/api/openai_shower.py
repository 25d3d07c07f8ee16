"""OpenAI's chunks and whole answers, for chat and text completions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from hotprefix.api.bill import Bill
from hotprefix.api.errors import Problem
from hotprefix.api.frame import DONE, ChunkEncoder, Frame, Piece
from hotprefix.engine.request import Delta


class Answer(Protocol):
    """Turns deltas into the pieces that a dialect shows, and pieces into whole choices."""

    def pieces(self, prompt: int, delta: Delta) -> Iterable[Piece]:
        """Entries of a stream's `choices`."""
        ...

    def fold(self, piece: Piece) -> None:
        """Put a piece where it belongs in the whole answer."""
        ...

    def choices(self) -> list[Piece]:
        """All that was folded: a whole answer says what the stream would have said."""
        ...


class OpenAiShower:
    """Streams tell no usage; see `UsageShower` for those that do."""

    def __init__(self, answer: Answer, frame: Frame) -> None:
        self._answer = answer
        self._frame = frame
        self._encoder = self._new_encoder(frame)

    def start(self, bill: Bill) -> bytes:
        return b""

    def show(self, prompt: int, delta: Delta) -> bytes:
        return b"".join(map(self._encoder.event, self._answer.pieces(prompt, delta)))

    def end(self, bill: Bill) -> bytes:
        return DONE

    def fail(self, problem: Problem) -> bytes:
        return self._frame.error_event(problem) + DONE

    def fold(self, prompt: int, delta: Delta) -> None:
        for piece in self._answer.pieces(prompt, delta):
            self._answer.fold(piece)

    def whole(self, bill: Bill) -> dict[str, Any]:
        return self._frame.whole(self._answer.choices(), bill)

    @staticmethod
    def _new_encoder(frame: Frame) -> ChunkEncoder:
        return frame.encoder()


class UsageShower(OpenAiShower):
    """The last chunk carries the usage; it is null in every other one."""

    def end(self, bill: Bill) -> bytes:
        return self._frame.usage_event(bill) + DONE

    @staticmethod
    def _new_encoder(frame: Frame) -> ChunkEncoder:
        return frame.usage_encoder()


def shower_of(answer: Answer, frame: Frame, *, include_usage: bool) -> OpenAiShower:
    """`include_usage` as streams ask for it; whole answers tell their usage anyway."""
    return UsageShower(answer, frame) if include_usage else OpenAiShower(answer, frame)
