"""Chunks of a stream as server-sent events, and the frame around a whole answer."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from hotprefix.api.bill import Bill
from hotprefix.api.envelopes import Envelope, encoded, envelope_of
from hotprefix.api.errors import Problem
from hotprefix.api.record import Record
from hotprefix.api.service import Service
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
class Kind:
    """Names of one kind of answer: the beginning of its id, and its `object`, whole and in chunks."""

    prefix: str
    whole: str
    chunk: str


CHAT = Kind("chatcmpl", "chat.completion", "chat.completion.chunk")
COMPLETION = Kind("cmpl", "text_completion", "text_completion")


@dataclass(frozen=True, slots=True)
class Frame:
    """What is the same in every chunk of an answer; `created` in Unix seconds.

    `envelope` and `request_id` are for an error in the middle of a stream.
    """

    kind: Kind
    answer_id: str
    created: int
    model: str
    fingerprint: str
    envelope: Envelope
    request_id: str

    def whole(self, choices: Sequence[Piece], bill: Bill) -> dict[str, Any]:
        """The answer in one piece."""
        return {**self._head(self.kind.whole), "choices": choices, "usage": usage_object(bill)}

    def encoder(self) -> ChunkEncoder:
        """For streams without usage."""
        return ChunkEncoder(self._head(self.kind.chunk), b"]}\n\n")

    def usage_encoder(self) -> ChunkEncoder:
        """For streams that end with the usage: it is null in every other chunk."""
        return ChunkEncoder(self._head(self.kind.chunk), b'],"usage":null}\n\n')

    def usage_event(self, bill: Bill) -> bytes:
        """The chunk that carries the usage and no choice."""
        chunk = {**self._head(self.kind.chunk), "choices": [], "usage": usage_object(bill)}
        return b"data: " + orjson.dumps(chunk) + b"\n\n"

    def error_event(self, problem: Problem) -> bytes:
        """An error in the middle of a stream, where the status can't change any more."""
        return b"data: " + encoded(self.envelope, problem, self.request_id) + b"\n\n"

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.answer_id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }


def frame_of(kind: Kind, service: Service, record: Record, model: str) -> Frame:
    """The frame of a new answer to the request on record; `model` as the request names it."""
    return Frame(
        kind=kind,
        answer_id=f"{kind.prefix}-{uuid.uuid4().hex}",
        created=int(service.clock.wall()),
        model=model,
        fingerprint=f"fp_{service.engine.model.fingerprint[:12]}",
        envelope=envelope_of(record.path),
        request_id=record.request_id,
    )


class ChunkEncoder:
    """Encodes the head once: a chunk then costs one small `dumps`."""

    def __init__(self, head: dict[str, Any], tail: bytes) -> None:
        self._head = b"data: " + orjson.dumps(head)[:-1] + b',"choices":['
        self._tail = tail

    def event(self, piece: Piece) -> bytes:
        """One chunk with one choice."""
        return self._head + orjson.dumps(piece) + self._tail
