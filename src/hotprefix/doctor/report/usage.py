"""Usage objects of every dialect, as four disjoint classes of tokens.

Chat, Responses and DashScope count cached tokens within the prompt, Anthropic beside it; the fields of each
are listed in docs/REPORT.md. A field that is absent or null is not reported, which is not 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hotprefix.doctor.dialect import Dialect

Json = Mapping[str, Any]

MOST_DIGITS = 15
"""Of a number of tokens: no prompt has more, and sums of them stay exact."""
UNNAMED_TTL = ""
"""Where the usage does not say for how long tokens were written."""

_TOO_MANY = 10**MOST_DIGITS
_TTL_FIELDS = {
    "ephemeral_5m_input_tokens": "5m",
    "ephemeral_1h_input_tokens": "1h",
    "ttl_30m_tokens": "30m",
    "ttl_12h_tokens": "12h",
}
_CHAT_READS = ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")
_CHAT_WRITES = (
    "cache_creation_input_tokens",
    "cache_write_tokens",
    "created_cache_tokens",
    "cache_creation_tokens",
)


class BrokenUsage(ValueError):
    """Counts that can't be true: negative, broken or huge, or more cached tokens than prompt tokens."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer; None is not reported. `read` and `written` are parts of `prompt`."""

    prompt: int | None = None
    read: int | None = None
    written: dict[str, int] | None = field(default=None)
    output: int | None = None
    mode: str | None = None

    @property
    def write_total(self) -> int | None:
        """Tokens written, whatever their TTL."""
        return None if self.written is None else sum(self.written.values())

    def __post_init__(self) -> None:
        cached = (self.read or 0) + (self.write_total or 0)
        if self.prompt is not None and cached > self.prompt:
            raise BrokenUsage(
                f"{self.read or 0} tokens read and {self.write_total or 0} written, but only "
                f"{self.prompt} in the prompt"
            )


def chat_usage(usage: Json) -> Usage:
    """OpenAI Chat and all that copy it: DashScope's compatible mode, DeepSeek, Kimi, vLLM, llama.cpp."""
    details = _part(usage, "prompt_tokens_details")
    read = _first(details, ("cached_tokens",))
    if read is None:
        read = _first(usage, _CHAT_READS)
    return Usage(
        prompt=count(usage, "prompt_tokens"),
        read=read,
        written=_written(details, _CHAT_WRITES) or _written(usage, _CHAT_WRITES),
        output=count(usage, "completion_tokens"),
        mode=_mode(details, read),
    )


def responses_usage(usage: Json) -> Usage:
    """OpenAI Responses. DashScope tells what it wrote in `x_details` only."""
    details = _part(usage, "input_tokens_details")
    read = count(details, "cached_tokens")
    written = _written(details, ("cache_write_tokens",))
    mode = _mode(details, read)
    for entry in usage.get("x_details") or ():
        if isinstance(entry, dict):
            inner = _part(entry, "prompt_tokens_details")
            written = _added(written, _written(inner, _CHAT_WRITES))
            mode = _mode(inner, read) or mode
    return Usage(count(usage, "input_tokens"), read, written, count(usage, "output_tokens"), mode)


def dashscope_usage(usage: Json) -> Usage:
    """DashScope's own protocol; models that see have `cached_tokens` at the top."""
    details = _part(usage, "prompt_tokens_details")
    read = _first(details, ("cached_tokens",))
    if read is None:
        read = count(usage, "cached_tokens")
    written = _written(details, _CHAT_WRITES)
    mode = _mode(details, read)
    return Usage(count(usage, "input_tokens"), read, written, count(usage, "output_tokens"), mode)


def anthropic_usage(usage: Json) -> Usage:
    """Anthropic: `input_tokens` are those neither read nor written, so the prompt is the sum of three."""
    fresh, read = count(usage, "input_tokens"), count(usage, "cache_read_input_tokens")
    written = _written(usage, ("cache_creation_input_tokens",))
    prompt = None if fresh is None else fresh + (read or 0) + sum((written or {}).values())
    mode = "explicit" if read or any((written or {}).values()) else None
    return Usage(prompt, read, written, count(usage, "output_tokens"), mode)


def count(holder: Json, name: str) -> int | None:
    """A number of tokens; None if the field is absent or null."""
    value = holder.get(name)
    if value is None or (type(value) is int and 0 <= value < _TOO_MANY):
        return value
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= MOST_DIGITS:
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _TOO_MANY:
        raise BrokenUsage(f"{name} is {value!r}, no number of tokens")
    return value


def _first(holder: Json, names: Iterable[str]) -> int | None:
    for name in names:
        if name in holder and (found := count(holder, name)) is not None:
            return found
    return None


def _written(holder: Json, names: Iterable[str]) -> dict[str, int] | None:
    """Tokens by TTL name: the split if there is one, else the total."""
    total = _first(holder, names)
    for split in ("cache_creation", "cache_write_tokens_details"):
        if split not in holder:
            continue
        parts = _part(holder, split)
        found = {
            ttl: tokens for name, ttl in _TTL_FIELDS.items() if (tokens := count(parts, name)) is not None
        }
        if found and (total is None or sum(found.values()) == total):
            return found
    return None if total is None else {UNNAMED_TTL: total}


def _added(one: dict[str, int] | None, other: dict[str, int] | None) -> dict[str, int] | None:
    if one is None or other is None:
        return one if other is None else other
    return {ttl: one.get(ttl, 0) + other.get(ttl, 0) for ttl in {**one, **other}}


def _mode(details: Json, read: int | None) -> str | None:
    if details.get("cache_type") == "ephemeral":
        return "explicit"
    return "implicit" if read else None


def _part(holder: Json, name: str) -> Json:
    found = holder.get(name)
    return found if isinstance(found, dict) else {}


def told_as(dialect: Dialect, usage: Usage) -> dict[str, Any]:
    """A usage object as that dialect writes it, with what a comparison of prompts needs."""
    if dialect is Dialect.ANTHROPIC:
        written = usage.write_total
        fresh = None if usage.prompt is None else usage.prompt - (usage.read or 0) - (written or 0)
        return {
            "input_tokens": fresh,
            "cache_read_input_tokens": usage.read,
            "cache_creation_input_tokens": written,
        }
    details = {"cached_tokens": usage.read}
    if dialect is Dialect.RESPONSES:
        return {"input_tokens": usage.prompt, "input_tokens_details": details}
    name = "input_tokens" if dialect is Dialect.DASHSCOPE else "prompt_tokens"
    return {name: usage.prompt, "prompt_tokens_details": details}
