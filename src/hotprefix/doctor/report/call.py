"""One request of a log, whatever kind of log that is."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum


class Source(StrEnum):
    """The kinds of logs that are read."""

    LEDGER = "ledger"
    SERVER_LOG = "server log"
    OPENAI_CHAT = "openai-chat"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    DASHSCOPE = "dashscope"
    LITELLM = "litellm"
    OPENTELEMETRY = "opentelemetry"


@dataclass(slots=True)
class Call:
    """A request as the log has it. None is "not reported", which is never the same as 0.

    `at` in Unix seconds, `first_token` and `total` in seconds. `prompt` counts all prompt tokens: of them
    `read` came from the cache, `written` were stored in it, `free` cost nothing. Money is in pico-units of
    `currency`. `lost` tokens could have been read, `reason` says why they were not. `session` groups the
    turns of a conversation; `words` are the first of the prompt. The prints are digests: of the tools, of the
    system prompt, of the OpenTelemetry span and of its parent. `body` points into the spool of request
    bodies, if the log has them. `by_ttl` are the written tokens by TTL name.
    """

    source: Source
    request_id: str | None = None
    at: float | None = None
    provider: str | None = None
    model: str | None = None
    profile: str | None = None
    tenant: str | None = None
    scene: str | None = None
    prompt_name: str | None = None
    prompt_version: str | None = None
    session: str | None = None
    mode: str | None = None
    prompt: int | None = None
    read: int | None = None
    written: int | None = None
    free: int | None = None
    output: int | None = None
    first_token: float | None = None
    total: float | None = None
    finish: str | None = None
    money: int | None = None
    currency: str | None = None
    reason: str | None = None
    detail: str | None = None
    evidence: str | None = None
    lost: int | None = None
    lost_money: int | None = None
    avoidable: bool | None = None
    path: str | None = None
    advice_en: str | None = None
    advice_zh: str | None = None
    words: str | None = None
    tools_print: int | None = None
    system_print: int | None = None
    span_print: int | None = None
    parent_print: int | None = None
    body: int | None = None
    by_ttl: dict[str, int] | None = field(default=None)


COLUMNS = tuple(one.name for one in fields(Call) if one.name != "by_ttl")
"""What is kept of a call while a report is made."""
