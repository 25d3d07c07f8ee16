"""Answers in DashScope's native form."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hotprefix.api.bill import Bill
from hotprefix.api.chat_answer import ChatAnswer
from hotprefix.api.dashscope.choice import Choice, ChoiceView
from hotprefix.api.dashscope.events import EventWriter
from hotprefix.api.dashscope.usage import native_usage
from hotprefix.api.envelopes import DashScopeEnvelope
from hotprefix.api.errors import Problem
from hotprefix.engine.request import Delta
from hotprefix.modes.classes import TokenClasses

Shape = Callable[[Sequence[ChoiceView]], dict[str, Any]]
"""Choices → the object under `output`."""


def text_shape(choices: Sequence[ChoiceView]) -> dict[str, Any]:
    """For `result_format` "text", which has room for one choice."""
    return choices[0].as_text()


def message_shape(n: int) -> Shape:
    """For `result_format` "message" with `n` choices."""
    return lambda choices: {"choices": [choice.as_message(numbered=n > 1) for choice in choices]}


def parts_shape(n: int) -> Shape:
    """For the multimodal route."""
    return lambda choices: {"choices": [choice.as_parts(numbered=n > 1) for choice in choices]}


class NativeShower:
    """Whole answers, and streams in which every event has all text so far.

    In a stream, the usage of an event counts what its own choice has drawn; the vendor's client
    adds the choices up.
    """

    def __init__(self, answer: ChatAnswer, shape: Shape, request_id: str) -> None:
        self._answer = answer
        self._shape = shape
        self._request_id = request_id
        self._events = EventWriter()
        self._choices: dict[int, Choice] = {}
        self._opening: Bill | None = None
        self._held: Choice | None = None

    def start(self, bill: Bill) -> bytes:
        self._opening = bill
        return b""

    def show(self, prompt: int, delta: Delta) -> bytes:
        choice = self._take(prompt, delta)
        if delta.last:
            # Its event waits for the bill.
            self._held = choice
            return b""
        if self._opening is None or not (choice.has_news or delta.finish_reason is not None):
            return b""
        return self._events.result(self._part(choice, self._opening, choice.drawn))

    def end(self, bill: Bill) -> bytes:
        if self._held is None:
            return b""
        others = sum(choice.drawn for choice in self._choices.values() if choice is not self._held)
        return self._events.result(self._part(self._held, bill, bill.usage.completion_tokens - others))

    def fail(self, problem: Problem) -> bytes:
        return self._events.error(problem.status, DashScopeEnvelope().document(problem, self._request_id))

    def fold(self, prompt: int, delta: Delta) -> None:
        self._take(prompt, delta)

    def whole(self, bill: Bill) -> dict[str, Any]:
        choices = [self._choices[index].all() for index in sorted(self._choices)]
        return self._document(choices, bill, bill.usage.completion_tokens)

    @staticmethod
    def _view(choice: Choice) -> ChoiceView:
        return choice.all()

    def _take(self, prompt: int, delta: Delta) -> Choice:
        choice = self._choices.setdefault(delta.index, Choice(delta.index))
        choice.drawn += len(delta.token_ids)
        for piece in self._answer.pieces(prompt, delta):
            choice.take(piece)
        return choice

    def _part(self, choice: Choice, bill: Bill, output: int) -> dict[str, Any]:
        return self._document([self._view(choice)], bill, output)

    def _document(self, choices: Sequence[ChoiceView], bill: Bill, output: int) -> dict[str, Any]:
        classes: TokenClasses = bill.classes
        return {
            "output": self._shape(choices),
            "usage": native_usage(classes, bill.usage.prompt_tokens, output),
            "request_id": self._request_id,
        }


class IncrementalShower(NativeShower):
    """Each event of a stream has only what is new in it."""

    @staticmethod
    def _view(choice: Choice) -> ChoiceView:
        return choice.news()
