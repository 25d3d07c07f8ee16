"""A chain of stored turns and a new input → the messages that the model reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hotprefix.api.conversation import Conversation
from hotprefix.api.responses.items import Item, texts_of
from hotprefix.base.errors import InvalidRequest
from hotprefix.prompt.spans import ContentBlock
from hotprefix.sessions.response import StoredResponse


@dataclass(slots=True)
class Entry:
    """A message and its content blocks, whose texts together are its content."""

    message: dict[str, Any]
    blocks: list[ContentBlock]


@dataclass(slots=True)
class Transcript:
    """Built in order: instructions, stored turns, the new input."""

    entries: list[Entry] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)
    """Functions by the ids of their calls."""

    def instruct(self, text: str) -> None:
        """Instructions of this request; those of earlier ones are not inherited."""
        self._say("system", [("instructions", text)])

    def add_stored(self, turn: StoredResponse) -> None:
        """An earlier turn, its answer byte for byte as the model drew it."""
        place = turn.response_id
        self.add_items(turn.input_items, f"{place}.input")
        output: list[Item] = turn.document["output"]
        if turn.answer is None:
            self.add_items(output, f"{place}.output")
            return
        self._names |= {item["call_id"]: item["name"] for item in output if item["type"] == "function_call"}
        self._say("assistant", [(f"{place}.output", turn.answer)])

    def add_items(self, items: Iterable[Item], place: str) -> None:
        """Raises `InvalidRequest` for the output of a call that was never made."""
        for number, item in enumerate(items):
            path = f"{place}[{number}]"
            match item["type"]:
                case "message":
                    role = "system" if item["role"] == "developer" else item["role"]
                    self._say(role, [(f"{path}.content{at}", text) for at, text in texts_of(item["content"])])
                case "function_call":
                    self._call(item)
                case "function_call_output":
                    self._result(item, path)

    def conversation(self, dropped: frozenset[int], warnings: Sequence[str]) -> Conversation:
        """As the caches and the template take it, without the entries at `dropped`."""
        conversation = Conversation(warnings=list(warnings))
        for number, entry in enumerate(self.entries):
            if number not in dropped:
                conversation.add(entry.message, [(block, None) for block in entry.blocks])
        return conversation

    def _say(self, role: str, parts: Sequence[tuple[str, str]]) -> None:
        blocks = [ContentBlock(path, role, text) for path, text in parts]
        if role == "system" and len(self.entries) == 1 and self.entries[0].message["role"] == "system":
            # Most templates take one system message, at the beginning.
            blocks[:1] = [replace(block, text=f"\n\n{block.text}") for block in blocks[:1]]
            self.entries[0].blocks += blocks
            self.entries[0].message["content"] += "".join(block.text for block in blocks)
            return
        content = "".join(block.text for block in blocks)
        self.entries.append(Entry({"role": role, "content": content}, blocks))

    def _call(self, item: Item) -> None:
        self._names[item["call_id"]] = item["name"]
        function = {"name": item["name"], "arguments": item["arguments"]}
        call = {"id": item["call_id"], "type": "function", "function": function}
        if not self.entries or self.entries[-1].message["role"] != "assistant":
            self.entries.append(Entry({"role": "assistant", "content": ""}, []))
        self.entries[-1].message.setdefault("tool_calls", []).append(call)

    def _result(self, item: Item, path: str) -> None:
        call_id = item["call_id"]
        if call_id not in self._names:
            raise InvalidRequest(
                f"No tool call found for function call output with call_id {call_id[:100]}.",
                param=f"{path}.call_id",
            )
        self._say("tool", [(f"{path}.output{at}", text) for at, text in texts_of(item["output"])])
        self.entries[-1].message |= {"tool_call_id": call_id, "name": self._names[call_id]}
