"""Deltas of an answer → output items, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hotprefix.api.chat_answer import Reader
from hotprefix.api.responses.items import Item, call_item, new_id
from hotprefix.api.tool_reader import is_whole
from hotprefix.engine.request import Delta, FinishReason, TokenLogprob
from hotprefix.prompt.tool_calls import parse_tool_calls

Event = dict[str, Any]
"""An event without its sequence number."""

LogprobsOf = Callable[[tuple[TokenLogprob, ...]], list[dict[str, Any]]]


class Output:
    """One answer: a message for its text, an item for each call. `items` are complete once the last delta
    came."""

    def __init__(self, reader: Reader, logprobs: LogprobsOf) -> None:
        self.items: list[Item] = []
        self.finish: FinishReason | None = None
        self._reader = reader
        self._logprobs_of = logprobs
        self._pieces: list[str] = []
        self._logprobs: list[dict[str, Any]] = []
        self._open: Item | None = None

    @property
    def is_cut(self) -> bool:
        """Whether the answer was longer than it might be."""
        return self.finish is FinishReason.LENGTH

    @property
    def drawn(self) -> str | None:
        """The text as drawn, where the items alone don't say it: calls can be written in many ways.

        None if a message says it all, or if calls were left out, which a next turn must not see.
        """
        shown = sum(item["type"] == "function_call" for item in self.items)
        text = "".join(self._pieces)
        return text if shown and len(parse_tool_calls(text)[1]) == shown else None

    def take(self, delta: Delta) -> Iterator[Event]:
        """The events of a delta; all of them have to be consumed."""
        self._pieces.append(delta.text)
        if self._is_call_open:
            # Those of the tokens that the call was written in.
            self._logprobs = []
        self._logprobs += self._logprobs_of(delta.logprobs)
        for part in self._reader.push(delta.text):
            yield from self._part(part)
        if delta.finish_reason is None:
            return
        self.finish = delta.finish_reason
        for part in self._reader.finish():
            yield from self._part(part)
        if not self.items:
            yield from self._opened()
        yield from self._closed("incomplete" if self.is_cut else "completed")

    @property
    def _is_call_open(self) -> bool:
        return self._open is not None and self._open["type"] == "function_call"

    def _part(self, part: dict[str, Any]) -> Iterator[Event]:
        if part.get("content"):
            yield from self._text(part["content"])
        for call in part.get("tool_calls", ()):
            # What is left are the tokens that the call was written in.
            self._logprobs = []
            yield from self._call(call)

    def _text(self, text: str) -> Iterator[Event]:
        if self._is_call_open:
            yield from self._closed("completed")
        if self._open is None:
            yield from self._opened()
        part = self._open_part()
        logprobs, self._logprobs = self._logprobs, []
        part["text"] += text
        part["logprobs"] += logprobs
        yield self._event("output_text.delta", content_index=0, delta=text, logprobs=logprobs)

    def _opened(self) -> Iterator[Event]:
        self._open = {
            "id": new_id("msg"),
            "type": "message",
            "status": "in_progress",
            "role": "assistant",
            "content": [],
        }
        self.items.append(self._open)
        yield self._event("output_item.added", item=self._open | {"content": []})
        part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
        self._open["content"].append(part)
        yield self._event("content_part.added", content_index=0, part=part | {"logprobs": []})

    def _closed(self, status: str) -> Iterator[Event]:
        if self._open is None:
            return
        if self._is_call_open:
            yield from self._call_closed()
            return
        part = self._open_part()
        self._open["status"] = status
        part["logprobs"] += self._logprobs
        self._logprobs = []
        yield self._event(
            "output_text.done", content_index=0, text=part["text"], logprobs=list(part["logprobs"])
        )
        yield self._event("content_part.done", content_index=0, part=dict(part))
        yield self._event("output_item.done", item=dict(self._open))
        self._open = None

    def _call(self, call: dict[str, Any]) -> Iterator[Event]:
        function = call["function"]
        if "id" in call:
            yield from self._closed("completed")
            self._open = call_item(call["id"], function["name"], "") | {"status": "in_progress"}
            self.items.append(self._open)
            yield self._event("output_item.added", item=dict(self._open))
        if function["arguments"]:
            self.items[-1]["arguments"] += function["arguments"]
            yield self._event("function_call_arguments.delta", delta=function["arguments"])

    def _call_closed(self) -> Iterator[Event]:
        item = self.items[-1]
        item["status"] = "completed" if is_whole(item["arguments"]) else "incomplete"
        yield self._event("function_call_arguments.done", name=item["name"], arguments=item["arguments"])
        yield self._event("output_item.done", item=dict(item))
        self._open = None

    def _open_part(self) -> dict[str, Any]:
        assert self._open is not None
        part: dict[str, Any] = self._open["content"][0]
        return part

    def _event(self, kind: str, **fields: Any) -> Event:
        event = {"type": f"response.{kind}", "output_index": len(self.items) - 1}
        if "item" not in fields:
            event["item_id"] = self.items[-1]["id"]
        return event | fields
