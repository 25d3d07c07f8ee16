"""Prompt prefixes that the operator declares public: every tenant may read their blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from hotprefix.base.clock import Clock
from hotprefix.tenants.database import Database
from hotprefix.tenants.errors import TenantError, UnknownPrefix

Messages = Sequence[Mapping[str, Any]]
ChatTokens = Callable[[Messages, Sequence[Mapping[str, Any]]], Sequence[int]]
"""Token ids of a conversation with these messages and tools."""
TextTokens = Callable[[str], Sequence[int]]
"""Token ids of a raw prompt."""

_PROBES = ("a", "Z", "0", "?")
"""Continuations that differ in their first character: what they leave in common is the prefix."""


@dataclass(frozen=True, slots=True)
class PublicPrefix:
    """Either `messages` with `tools`, or a raw `text` for completions. `created` in Unix seconds."""

    id: str
    name: str
    created: float
    messages: tuple[Mapping[str, Any], ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    text: str = ""

    @classmethod
    def from_document(
        cls, prefix_id: str, name: str, created: float, document: Mapping[str, Any]
    ) -> PublicPrefix:
        """Of a document as `read_prefix` and its like return it."""
        messages, tools = tuple(document.get("messages", ())), tuple(document.get("tools", ()))
        return cls(prefix_id, name, created, messages, tools, document.get("text", ""))

    def tokens(self, chat: ChatTokens, text: TextTokens) -> list[int]:
        """What all prompts that begin with this prefix have in common.

        Found by asking for several continuations: so it ends where the template or the tokenizer
        would let the next words change something.
        """
        if self.text:
            prompts = [list(text(self.text + probe)) for probe in _PROBES]
        else:
            ends = [{"role": "user", "content": probe} for probe in _PROBES]
            prompts = [list(chat((*self.messages, end), self.tools)) for end in ends]
        first, *others = prompts
        rows = enumerate(zip(first, *others, strict=False))
        length = next((at for at, row in rows if len(set(row)) > 1), min(map(len, prompts)))
        return first[:length]


def read_prefix(data: bytes) -> dict[str, Any]:
    """The document of a file: JSON messages (an array, or an object with `messages` and `tools`),
    else the text of a system message. Raises `TenantError`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TenantError(f"The file is not UTF-8 text: byte {error.start} is wrong.") from None
    if not text.strip():
        raise TenantError("The file is empty; a public prefix is a text or a JSON array of messages.")
    if text.lstrip()[0] not in "[{":
        # The line end that editors put at the end of a file is no part of the message.
        content = text.removesuffix("\n").removesuffix("\r")
        return {"messages": [{"role": "system", "content": content}], "tools": []}
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise TenantError(f"The file looks like JSON and is not: {error}.") from None
    return document_of(document if isinstance(document, dict) else {"messages": document})


def read_raw(data: bytes) -> dict[str, Any]:
    """The document of a file that is the beginning of a raw prompt. Raises `TenantError`."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TenantError(f"The file is not UTF-8 text: byte {error.start} is wrong.") from None
    if not text:
        raise TenantError("The file is empty; a public prefix is a text.")
    return {"text": text}


class PublicStore:
    """The registered prefixes. The same content has the same id."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def add(self, document: Mapping[str, Any], name: str) -> PublicPrefix:
        """Register what `read_prefix` or `read_raw` returned; again is the same."""
        text = orjson.dumps(document, option=orjson.OPT_SORT_KEYS).decode()
        prefix_id = f"pub_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        insert = "INSERT OR IGNORE INTO public_prefix (id, name, document, created) VALUES (?, ?, ?, ?)"
        values = (prefix_id, name, text, self._clock.wall())
        self._database.write(lambda connection: connection.execute(insert, values))
        return self.get(prefix_id)

    def get(self, prefix_id: str) -> PublicPrefix:
        """A prefix by its id. Raises `UnknownPrefix`."""
        query = "SELECT id, name, created, document FROM public_prefix WHERE id = ?"
        rows = self._database.rows(query, (prefix_id,))
        if not rows:
            raise UnknownPrefix(
                f"There is no public prefix '{prefix_id[:80]}'; 'hotprefix keys public list' shows their ids."
            )
        return _prefix(rows[0])

    def list(self) -> list[PublicPrefix]:
        """All, oldest first."""
        query = "SELECT id, name, created, document FROM public_prefix ORDER BY created, rowid"
        return [_prefix(row) for row in self._database.rows(query)]

    def remove(self, prefix_id: str) -> PublicPrefix:
        """Make a prefix private again: no new request shares its blocks. Raises `UnknownPrefix`."""
        gone = self.get(prefix_id)
        delete = "DELETE FROM public_prefix WHERE id = ?"
        self._database.write(lambda connection: connection.execute(delete, (prefix_id,)))
        return gone


def document_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Checked `messages` and `tools`, as they are stored. Raises `TenantError`."""
    messages, tools = document.get("messages"), document.get("tools", [])
    unknown = sorted(set(document) - {"messages", "tools"})
    if unknown:
        raise TenantError(f"Only 'messages' and 'tools' belong into a public prefix, not '{unknown[0]}'.")
    if not isinstance(messages, list) or not messages or not all(isinstance(m, dict) for m in messages):
        raise TenantError("'messages' must be an array with at least one message.")
    if not all(isinstance(message.get("role"), str) for message in messages):
        raise TenantError("Every message needs a 'role'.")
    if not isinstance(tools, list) or not all(isinstance(tool, dict) for tool in tools):
        raise TenantError("'tools' must be an array of tool definitions.")
    return {"messages": messages, "tools": tools}


def _prefix(row: tuple[Any, ...]) -> PublicPrefix:
    prefix_id, name, created, document = row
    return PublicPrefix.from_document(prefix_id, name, created, orjson.loads(document))
