"""One choice of an answer as DashScope shows it: its new parts, or all of it so far."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hotprefix.api.frame import Piece

_UNFINISHED = "null"
"""The word, not JSON's null: so the protocol says that there is more to come."""


class Choice:
    """Takes a chat answer's pieces. What was taken is new until it is shown."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.finish = _UNFINISHED
        self.drawn = 0
        self._text = ""
        self._parts: list[dict[str, Any]] = []
        self._logprobs: list[dict[str, Any]] = []
        self._shown = (0, 0, 0)

    @property
    def has_news(self) -> bool:
        """Whether anything was taken since the last showing."""
        return self._sizes() != self._shown

    @property
    def ended(self) -> bool:
        return self.finish != _UNFINISHED

    def take(self, piece: Piece) -> None:
        delta = piece["delta"]
        self._text += delta.get("content", "")
        self._parts += delta.get("tool_calls", ())
        if piece["logprobs"] is not None:
            self._logprobs += piece["logprobs"]["content"]
        if piece["finish_reason"] is not None:
            self.finish = piece["finish_reason"]

    def news(self) -> ChoiceView:
        """What came since the last showing, which this is now."""
        text, parts, logprobs = self._shown
        self._shown = self._sizes()
        return ChoiceView(self, self._text[text:], _joined(self._parts[parts:]), self._logprobs[logprobs:])

    def all(self) -> ChoiceView:
        """All so far; nothing is new after this."""
        self._shown = self._sizes()
        return ChoiceView(self, self._text, _joined(self._parts), self._logprobs)

    def _sizes(self) -> tuple[int, int, int]:
        return len(self._text), len(self._parts), len(self._logprobs)


class ChoiceView:
    """A choice, or a part of it, in the shapes of the protocol."""

    def __init__(
        self, choice: Choice, text: str, calls: list[dict[str, Any]], logprobs: list[dict[str, Any]]
    ) -> None:
        self._choice = choice
        self._text = text
        self._calls = calls
        self._logprobs = logprobs

    def as_text(self) -> dict[str, Any]:
        """`output` of `result_format` "text"."""
        return {"text": self._text, "finish_reason": self._choice.finish}

    def as_message(self, *, numbered: bool) -> dict[str, Any]:
        """An entry of `output.choices`; `numbered` where there are several."""
        return self._entry(self._text, numbered)

    def as_parts(self, *, numbered: bool) -> dict[str, Any]:
        """As `as_message`, with content in parts: so the multimodal route has it."""
        return self._entry([{"text": self._text}] if self._text else [], numbered)

    def _entry(self, content: Any, numbered: bool) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if self._calls:
            message["tool_calls"] = self._calls
        entry: dict[str, Any] = {"finish_reason": self._choice.finish, "message": message}
        if numbered:
            entry["index"] = self._choice.index
        if self._logprobs:
            entry["logprobs"] = {"content": self._logprobs}
        return entry


def _joined(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Parts of calls, one entry for each call: the beginning of a call or of a part of one."""
    calls: dict[int, dict[str, Any]] = {}
    for part in parts:
        call = calls.get(part["index"])
        if call is None:
            calls[part["index"]] = {"type": "function"} | part | {"function": dict(part["function"])}
        else:
            call["function"]["arguments"] += part["function"]["arguments"]
    return list(calls.values())
