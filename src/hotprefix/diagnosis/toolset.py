"""Tool definitions as they are remembered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import orjson

from hotprefix.diagnosis.canonical import canonical


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """One tool: `digest` of its JSON as sent, and the JSON itself, or if that is longer than the
    bound, only the digest of its meaning, `long_meaning`."""

    name: str
    digest: bytes
    text: bytes
    long_meaning: bytes

    @property
    def meaning(self) -> bytes:
        """A digest of the JSON without the order of keys."""
        return self.long_meaning or _meaning(json.loads(self.text), self.text)


@dataclass(frozen=True, slots=True)
class ToolSet:
    """A request's tools in order; `digest` is over all of them."""

    digest: bytes
    tools: tuple[ToolRecord, ...]

    @property
    def size(self) -> int:
        """Bytes of the JSON that is kept."""
        return sum(len(tool.text) for tool in self.tools)


NO_TOOLS = ToolSet(b"", ())


def record_tools(tools: Sequence[Mapping[str, Any]], text_limit: int) -> ToolSet:
    """Remember `tools`; JSON beyond `text_limit` bytes a tool only by its digests."""
    if not tools:
        return NO_TOOLS
    records = tuple(_record(tool, text_limit) for tool in tools)
    return ToolSet(_digest(b"".join(record.digest for record in records)), records)


def _record(tool: Mapping[str, Any], text_limit: int) -> ToolRecord:
    text = _json(tool)
    if 0 < len(text) <= text_limit:
        return ToolRecord(tool_name(tool), _digest(text), text, b"")
    return ToolRecord(tool_name(tool), _digest(text), b"", _meaning(tool, text))


def _meaning(tool: Mapping[str, Any], text: bytes) -> bytes:
    try:
        return _digest(_json(canonical(tool)))
    except RecursionError:
        return _digest(text)


def tool_name(tool: Mapping[str, Any]) -> str:
    """The function's name in any dialect; empty if there is none."""
    function = tool.get("function")
    name = function.get("name") if isinstance(function, Mapping) else tool.get("name")
    return name if isinstance(name, str) else ""


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


def _json(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # lone surrogates, numbers beyond 64 bits, or nested deeply
        pass
    try:
        return json.dumps(value, ensure_ascii=True).encode("ascii")
    except RecursionError:  # too deep for anyone to compare
        return b""
