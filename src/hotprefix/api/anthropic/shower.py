"""Answers in the form of Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from hotprefix.api.anthropic.content import ContentWriter, Event
from hotprefix.api.anthropic.usage import delta_usage, message_usage
from hotprefix.api.bill import Bill
from hotprefix.api.chat_answer import Reader
from hotprefix.api.envelopes import AnthropicEnvelope
from hotprefix.api.errors import Problem
from hotprefix.engine.request import Delta, FinishReason


@dataclass(frozen=True, slots=True)
class MessageHead:
    """What is known of a message beforehand. `length_reason` is the `stop_reason` of an answer that was
    cut: it had all the tokens it was allowed, or there was no more room in the context."""

    message_id: str
    model: str
    request_id: str
    length_reason: str = "max_tokens"

    def message(self) -> dict[str, Any]:
        """Without content and end."""
        return {
            "id": self.message_id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }


class MessageShower:
    """One answer to one prompt."""

    def __init__(self, reader: Reader, head: MessageHead) -> None:
        self._reader = reader
        self._head = head
        self._content = ContentWriter()
        self._has_pinged = False
        self._stop: dict[str, Any] = {"stop_reason": None, "stop_sequence": None}

    def start(self, bill: Bill) -> bytes:
        message = self._head.message() | {"usage": message_usage(bill)}
        return _events([{"type": "message_start", "message": message}])

    def show(self, prompt: int, delta: Delta) -> bytes:
        return _events(self._with_ping(self._take(delta)))

    def end(self, bill: Bill) -> bytes:
        last = {"type": "message_delta", "delta": self._stop, "usage": delta_usage(bill)}
        return _events([last, {"type": "message_stop"}])

    def fail(self, problem: Problem) -> bytes:
        return _events([AnthropicEnvelope().document(problem, self._head.request_id)])

    def fold(self, prompt: int, delta: Delta) -> None:
        self._take(delta)

    def whole(self, bill: Bill) -> dict[str, Any]:
        body = {"content": self._content.blocks, "usage": message_usage(bill)}
        return self._head.message() | self._stop | body

    def _with_ping(self, events: Iterable[Event]) -> Iterator[Event]:
        """Anthropic sends a `ping` behind the first block's start; clients have to pass over it."""
        for event in events:
            yield event
            if event["type"] == "content_block_start" and not self._has_pinged:
                self._has_pinged = True
                yield {"type": "ping"}

    def _take(self, delta: Delta) -> list[Event]:
        parts = list(self._reader.push(delta.text))
        if delta.finish_reason is not None:
            parts += self._reader.finish()
        events = [event for part in parts for event in self._content.push(part)]
        if delta.finish_reason is not None:
            events += self._content.close()
            self._stop = self._stopped(delta)
        return events

    def _stopped(self, delta: Delta) -> dict[str, Any]:
        if delta.finish_reason is FinishReason.LENGTH:
            return {"stop_reason": self._head.length_reason, "stop_sequence": None}
        if self._reader.has_calls:
            return {"stop_reason": "tool_use", "stop_sequence": None}
        reason = "end_turn" if delta.stop_sequence is None else "stop_sequence"
        return {"stop_reason": reason, "stop_sequence": delta.stop_sequence}


class WarmShower(MessageShower):
    """For requests that only prepare the cache: nothing is said, and `max_tokens` is why."""

    def whole(self, bill: Bill) -> dict[str, Any]:
        return super().whole(bill) | {"content": [], "stop_reason": "max_tokens", "stop_sequence": None}


def _events(events: Iterable[Event]) -> bytes:
    return b"".join(
        b"event: " + event["type"].encode() + b"\ndata: " + orjson.dumps(event) + b"\n\n" for event in events
    )
