"""What the vendor said it read, in the tokens that we count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.report.usage import (
    BrokenUsage,
    Usage,
    anthropic_usage,
    chat_usage,
    dashscope_usage,
    responses_usage,
)

_READERS = {
    Dialect.CHAT: chat_usage,
    Dialect.RESPONSES: responses_usage,
    Dialect.DASHSCOPE: dashscope_usage,
    Dialect.ANTHROPIC: anthropic_usage,
}
_TOLERANCE = 0.02
_TOLERANCE_OF_ESTIMATES = 0.05
"""Shares of the prompt by which a vendor's count may differ from what the rules give, and still be that:
another tokenizer spreads a text over its tokens in another way."""


@dataclass(frozen=True, slots=True)
class Reported:
    """`prompt` and `read` are the vendor's tokens; `read` is None if it was not told."""

    prompt: int | None
    read: int | None

    def matched(self, tokens: int, expected: int, quantum: int, *, tolerance: float) -> int | None:
        """Tokens read, of `tokens` in our count; `expected` by the rules, which small differences come to."""
        if self.read is None:
            return None
        scale = tokens / self.prompt if self.prompt else 1.0
        found = min(tokens, round(self.read * scale))
        return expected if abs(found - expected) <= max(quantum, tolerance * tokens) else found


def tolerance_of(*, estimates: bool) -> float:
    """The share of a prompt by which counts may differ."""
    return _TOLERANCE_OF_ESTIMATES if estimates else _TOLERANCE


def reported_of(recorded: Recorded) -> Reported | None:
    """What the recorded answer says; None if there is none with a usage, or the usage can't be true."""
    usage = _usage(recorded.response)
    if usage is None:
        return None
    try:
        read = _READERS[recorded.dialect](usage)
    except BrokenUsage:
        return None
    return Reported(read.prompt, _read(recorded, read))


def _read(recorded: Recorded, usage: Usage) -> int | None:
    """Anthropic tells both counts or none; with only writes told, nothing was read."""
    if usage.read is None and recorded.dialect is Dialect.ANTHROPIC and usage.write_total is not None:
        return 0
    return usage.read


def _usage(response: Mapping[str, object] | None) -> Mapping[str, object] | None:
    found = response.get("usage") if response is not None else None
    return found if isinstance(found, Mapping) and found else None
