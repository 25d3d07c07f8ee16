"""A comparison as JSON."""

from __future__ import annotations

from typing import Any

from hotprefix.doctor.explain.difference import plain
from hotprefix.doctor.explain.facts import report_facts
from hotprefix.doctor.gate.side import Side
from hotprefix.doctor.gate.verdict import Gate, Grown, Worse


def gate_facts(gate: Gate) -> dict[str, Any]:
    """The verdict, both sides, and what got worse."""
    return {
        "passed": gate.is_passed,
        "before": _side(gate.before),
        "after": _side(gate.after),
        "fall_points": round(100 * gate.fall, 4),
        "limit_points": round(100 * gate.limits.points, 4),
        "lost_tokens": gate.lost,
        "min_tokens": gate.limits.least,
        "worse_requests": [_worse(one) for one in gate.worse],
        "grown_causes": [_grown(one) for one in gate.grown],
        "missing_files": list(gate.missing),
        "new_files": list(gate.new),
        "notes": list(gate.notes),
    }


def _side(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "requests": side.sums.requests,
        "unread": side.sums.unread,
        "prompt_tokens": side.tokens,
        "cacheable_tokens": side.read,
        "cacheable_share": round(side.share, 6),
    }


def _worse(one: Worse) -> dict[str, Any]:
    change = one.change
    return {
        "request": str(one.place),
        "tokens": one.tokens,
        "cacheable_before": one.before,
        "cacheable_after": one.after,
        "more_like_it": one.more,
        "change": None
        if change is None
        else {
            "path": change.path,
            "at": change.at,
            "before": plain(change.before),
            "after": plain(change.after),
        },
        "why": report_facts(one.report, ""),
    }


def _grown(one: Grown) -> dict[str, Any]:
    return {
        "reason": str(one.reason),
        "detail": one.detail,
        "path": one.pattern,
        "lost_before": one.before,
        "lost_after": one.after,
        "sample": {"request": str(one.place), **report_facts(one.sample, "")},
    }
