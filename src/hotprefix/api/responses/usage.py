"""`usage` of a response, in both dialects."""

from __future__ import annotations

from typing import Any

from hotprefix.api.bill import Bill
from hotprefix.api.frame import cache_creation
from hotprefix.modes.classes import Mode


def openai_usage(bill: Bill) -> dict[str, Any]:
    """Reads and writes are parts of `input_tokens`."""
    details = {"cached_tokens": bill.classes.read, "cache_write_tokens": bill.classes.write_total}
    return _usage(bill) | {"input_tokens_details": details}


def dashscope_usage(bill: Bill) -> dict[str, Any]:
    """Model Studio tells what was written in `x_details` only, and only if the session cache was on."""
    classes, usage = bill.classes, _usage(bill)
    details: dict[str, Any] = {"cached_tokens": classes.read}
    if classes.mode is Mode.SESSION:
        details |= cache_creation(classes) | {"cache_type": "ephemeral"}
    billed = {"x_billing_type": "response_api"} | usage | {"prompt_tokens_details": details}
    return usage | {"input_tokens_details": {"cached_tokens": classes.read}, "x_details": [billed]}


def _usage(bill: Bill) -> dict[str, Any]:
    usage = bill.usage
    return {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
