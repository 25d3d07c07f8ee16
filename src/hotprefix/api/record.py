"""What the log line of a request says."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from starlette.types import Scope

from hotprefix.engine.request import Usage

_KEY = "hotprefix.record"


@dataclass(slots=True)
class Record:
    """Filled in while the request is worked on. Times are on the injected clock, in seconds."""

    request_id: str
    method: str
    path: str
    started: float
    status: int | None = None
    model: str | None = None
    usage: Usage | None = None
    first_token: float | None = None
    finish_reason: str | None = None
    error: str | None = None
    client_gone: bool = False
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def generated(self) -> bool:
        """Whether the request got as far as the engine."""
        return self.usage is not None

    def fields(self, now: float) -> dict[str, Any]:
        """Keys and values of the line; times in milliseconds."""
        line: dict[str, Any] = {
            "request_id": self.request_id,
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "total_ms": round((now - self.started) * 1000, 2),
        }
        if self.usage is not None:
            line["model"] = self.model
            line["prompt_tokens"] = self.usage.prompt_tokens
            line["cached_tokens"] = self.usage.cached_tokens
            line["completion_tokens"] = self.usage.completion_tokens
            if self.usage.dropped_tokens:
                line["dropped_tokens"] = self.usage.dropped_tokens
            line["finish_reason"] = self.finish_reason
            if self.first_token is not None:
                line["ttft_ms"] = round((self.first_token - self.started) * 1000, 2)
        line |= {name.removeprefix("x-hotprefix-"): value for name, value in self.notes.items()}
        if self.error is not None:
            line["error"] = self.error
        if self.client_gone:
            line["client_gone"] = True
        return line


def attach(scope: Scope, record: Record) -> None:
    """Let the endpoint find the record of its request."""
    scope[_KEY] = record


def record_of(scope: Scope) -> Record:
    """The record of this request."""
    record: Record = scope[_KEY]
    return record
