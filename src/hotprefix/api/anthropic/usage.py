"""Anthropic's `usage`: disjoint classes of input tokens."""

from __future__ import annotations

from typing import Any

from hotprefix.api.bill import Bill


def delta_usage(bill: Bill) -> dict[str, Any]:
    """For `message_delta`, where writes are not split by their lifetime."""
    classes = bill.classes
    return {
        "input_tokens": bill.usage.prompt_tokens - classes.read - classes.write_total,
        "cache_creation_input_tokens": classes.write_total,
        "cache_read_input_tokens": classes.read,
        "output_tokens": bill.usage.completion_tokens,
    }


def message_usage(bill: Bill) -> dict[str, Any]:
    """For a message, and for `message_start`."""
    written = {"5m": 0, "1h": 0} | bill.classes.written
    split = {f"ephemeral_{ttl}_input_tokens": count for ttl, count in written.items()}
    return delta_usage(bill) | {"cache_creation": split, "service_tier": "standard"}
