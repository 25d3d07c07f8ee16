"""Totals as JSON shows them, on the wire and on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from hotprefix.ledger.query import HIT_RATE_FORMULA, Dimension, Totals


def usage_facts(by: Dimension, groups: Sequence[Totals], sums: Sequence[Totals]) -> dict[str, Any]:
    """Groups of `totals_by` and sums of `totals`. A group is named by its dimension; a prompt by
    `prompt_name`, since `prompt` are its tokens."""
    name = "prompt_name" if by is Dimension.PROMPT else by.value
    return {
        "by": by.value,
        "groups": [{name: group.key} | _numbers(group) for group in groups],
        "totals": [_numbers(total) for total in sums],
        "formula": HIT_RATE_FORMULA,
    }


def _numbers(total: Totals) -> dict[str, Any]:
    """Money as text: a JSON number would be read as a float."""
    return {
        "requests": total.requests,
        "requests_hit": total.hits,
        "prompt": total.prompt,
        "computed": total.computed,
        "read": total.read,
        "written": total.written,
        "free": total.free,
        "output": total.output,
        "hit_rate": total.hit_rate,
        "request_hit_rate": total.request_hit_rate,
        "first_token_seconds": total.first_token,
        "lost_tokens": total.lost_tokens,
        "money": _exact(total.money),
        "lost_money": _exact(total.lost_money),
        "currency": total.currency,
    }


def _exact(money: Decimal) -> str:
    return format(money.normalize(), "f")
