"""The `usage` object of DashScope's native protocol."""

from __future__ import annotations

from typing import Any

from hotprefix.api.frame import cache_creation
from hotprefix.modes.classes import Mode, TokenClasses


def native_usage(classes: TokenClasses, prompt_tokens: int, output_tokens: int) -> dict[str, Any]:
    """`cache_type` and what was created are there only where an explicit cache was used."""
    details: dict[str, Any] = {"cached_tokens": classes.read}
    if classes.mode is Mode.EXPLICIT:
        details |= cache_creation(classes) | {"cache_type": "ephemeral"}
    return {
        "input_tokens": prompt_tokens,
        "output_tokens": output_tokens,
        "total_tokens": prompt_tokens + output_tokens,
        "prompt_tokens_details": details,
    }
