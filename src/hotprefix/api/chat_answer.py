"""Answers in the shape of chat completions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from hotprefix.api.frame import Piece
from hotprefix.api.logprobs import chat_logprobs
from hotprefix.engine.request import Delta, FinishReason, TokenLogprob
from hotprefix.prompt.tokenizer import Tokenizer

LogprobsShape = Callable[[tuple[TokenLogprob, ...]], dict[str, Any] | None]


class Reader(Protocol):
    """Reads one choice's text and says which `delta` objects to show for it."""

    @property
    def has_calls(self) -> bool:
        """Whether a tool call was seen."""
        ...

    def push(self, text: str) -> Iterable[dict[str, Any]]: ...

    def finish(self) -> Iterable[dict[str, Any]]:
        """What was held back."""
        ...


class PlainReader:
    """Without tools, text is content."""

    has_calls = False

    def push(self, text: str) -> Iterable[dict[str, Any]]:
        return ({"content": text},) if text else ()

    def finish(self) -> Iterable[dict[str, Any]]:
        return ()


def no_logprobs(_: tuple[TokenLogprob, ...]) -> None:
    """For requests that don't want them."""


def shown_logprobs(tokenizer: Tokenizer) -> LogprobsShape:
    """For requests that want them."""
    return lambda entries: chat_logprobs(entries, tokenizer) if entries else None


class ChatAnswer:
    """One prompt, `n` choices; `reader` makes a fresh reader for each."""

    def __init__(self, reader: Callable[[], Reader], logprobs: LogprobsShape) -> None:
        self._new_reader = reader
        self._logprobs = logprobs
        self._readers: dict[int, Reader] = {}
        self._whole: dict[int, Piece] = {}

    def pieces(self, prompt: int, delta: Delta) -> Iterator[Piece]:
        """The role goes with the first token, the finish reason after the last one."""
        index = delta.index
        reader = self._readers.get(index)
        if reader is None:
            reader = self._readers[index] = self._new_reader()
            yield _piece(index, {"role": "assistant", "content": ""})
        logprobs = self._logprobs(delta.logprobs)
        shown = list(reader.push(delta.text))
        if delta.finish_reason is not None:
            shown += reader.finish()
        if logprobs is not None and not shown:
            shown.append({"content": ""})
        for part in shown:
            yield _piece(index, part, logprobs=logprobs)
            logprobs = None
        if delta.finish_reason is not None:
            yield _piece(index, {}, finish_reason=_reason(delta.finish_reason, reader))

    def fold(self, piece: Piece) -> None:
        """What a client library does with the chunks of a stream."""
        index, part = piece["index"], piece["delta"]
        whole = self._whole.get(index)
        if whole is None:
            message = {"role": "assistant", "content": "", "refusal": None}
            whole = self._whole[index] = {"index": index, "message": message, "logprobs": None}
        message = whole["message"]
        message["content"] += part.get("content", "")
        for call in part.get("tool_calls", ()):
            _fold_call(message.setdefault("tool_calls", []), call)
        if piece["logprobs"] is not None:
            if whole["logprobs"] is None:
                whole["logprobs"] = {"content": [], "refusal": None}
            whole["logprobs"]["content"] += piece["logprobs"]["content"]
        whole["finish_reason"] = piece["finish_reason"]

    def choices(self) -> list[Piece]:
        """In the order of their indices; content is null beside tool calls if there is none."""
        choices = [self._whole[index] for index in sorted(self._whole)]
        for choice in choices:
            message = choice["message"]
            if "tool_calls" in message and not message["content"]:
                message["content"] = None
        return choices


def _piece(
    index: int,
    delta: dict[str, Any],
    *,
    logprobs: dict[str, Any] | None = None,
    finish_reason: str | None = None,
) -> Piece:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish_reason}


def _reason(reason: FinishReason, reader: Reader) -> str:
    return "tool_calls" if reason is FinishReason.STOP and reader.has_calls else reason.value


def _fold_call(calls: list[dict[str, Any]], part: dict[str, Any]) -> None:
    if part["index"] == len(calls):
        calls.append({"id": part["id"], "type": "function", "function": dict(part["function"])})
    else:
        calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
