"""Chunks of a stream as server-sent events, and the frame around a whole answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from hotprefix.api.bill import Bill
from hotprefix.api.errors import Problem
from hotprefix.modes.classes import Mode, TokenClasses

DONE = b"data: [DONE]\n\n"

Piece = dict[str, Any]
"""One entry of a chunk's `choices`."""


def usage_object(bill: Bill) -> dict[str, Any]:
    """OpenAI's shape, with DashScope's additions where an explicit cache was used."""
    usage, classes = bill.usage, bill.classes
    details: dict[str, Any] = {"cached_tokens": classes.read}
    if classes.mode is Mode.EXPLICIT:
        details |= cache_creation(classes) | {"cache_type": "ephemeral"}
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def cache_creation(classes: TokenClasses) -> dict[str, Any]:
    """Tokens written, in all and by TTL; the five-minute count is there even if it is 0."""
    written = {"5m": 0} | classes.written
    return {
        "cache_creation_input_tokens": classes.write_total,
        "cache_creation": {f"ephemeral_{ttl}_input_tokens": count for ttl, count in written.items()},
    }


@dataclass(frozen=True, slots=True)
class Frame:
    """What is the same in every chunk of an answer; `created` in Unix seconds."""

    answer_id: str
    whole_object: str
    chunk_object: str
    created: int
    model: str
    fingerprint: str

    def whole(self, choices: Sequence[Piece], bill: Bill) -> dict[str, Any]:
        """The answer in one piece."""
        return {**self._head(self.whole_object), "choices": choices, "usage": usage_object(bill)}

    def encoder(self) -> ChunkEncoder:
        """For streams without usage."""
        return ChunkEncoder(self._head(self.chunk_object), b"]}\n\n")

    def usage_encoder(self) -> ChunkEncoder:
        """For streams that end with the usage: it is null in every other chunk."""
        return ChunkEncoder(self._head(self.chunk_object), b'],"usage":null}\n\n')

    def usage_event(self, bill: Bill) -> bytes:
        """The chunk that carries the usage and no choice."""
        chunk = {**self._head(self.chunk_object), "choices": [], "usage": usage_object(bill)}
        return b"data: " + orjson.dumps(chunk) + b"\n\n"

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.answer_id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }


class ChunkEncoder:
    """Encodes the head once: a chunk then costs one small `dumps`."""

    def __init__(self, head: dict[str, Any], tail: bytes) -> None:
        self._head = b"data: " + orjson.dumps(head)[:-1] + b',"choices":['
        self._tail = tail

    def event(self, piece: Piece) -> bytes:
        """One chunk with one choice."""
        return self._head + orjson.dumps(piece) + self._tail


def error_event(problem: Problem) -> bytes:
    """An error in the middle of a stream, where the status can't change any more."""
    return b"data: " + problem.body() + b"\n\n"
