"""A report as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotprefix.doctor.report.figures import (
    Gap,
    Latency,
    Money,
    Note,
    Offender,
    Report,
    SessionFinding,
    Sessions,
    Spread,
    Sums,
)
from hotprefix.doctor.report.wording import Language, note_told, word

_SUMS = (
    "requests", "measured", "hits", "prompt", "computed", "read", "written", "free", "output",
    "measured_prompt", "hit_rate", "request_hit_rate", "judged", "judged_prompt", "lost", "avoidable",
    "priced",
)  # fmt: skip


def report_facts(report: Report) -> dict[str, Any]:
    """Every figure; money as text, for a JSON number would be read as a float. null is "not reported"."""
    return {
        "files": list(report.files),
        "since": report.since,
        "until": report.until,
        "formula": word("formula", Language.EN),
        "total": _sums(report.total),
        "groups": {
            dimension.value: [{"key": sums.key} | _sums(sums) for sums in groups]
            for dimension, groups in report.groups.items()
        },
        "hidden": {dimension.value: count for dimension, count in report.hidden.items()},
        "first_token": _latency(report.latency),
        "timeline": _timeline(report),
        "gap": None if report.gap is None else _gap(report.gap),
        "offenders": [_offender(one) for one in report.offenders],
        "sessions": None if report.sessions is None else _sessions(report.sessions),
        "compared": {"done": report.compared.done, "held": report.compared.held},
        "notes": [_note(one) for one in report.notes],
    }


def _sums(sums: Sums) -> dict[str, Any]:
    return {name: getattr(sums, name) for name in _SUMS} | {
        "money": _money(sums.money),
        "lost_money": _money(sums.lost_money),
        "avoidable_money": _money(sums.avoidable_money),
        "first_token": _spread(sums.first_token),
    }


def _money(money: Sequence[Money]) -> dict[str, str]:
    return {one.currency: format(one.amount.normalize(), "f") for one in money}


def _spread(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {"count": spread.count, "mean": spread.mean} | {
        f"p{percentile}": value for percentile, value in spread.percentiles.items()
    }


def _latency(latency: Latency) -> dict[str, Any]:
    return {
        "hit": _spread(latency.hit),
        "miss": _spread(latency.miss),
        "by_share_read": [{"share": name, **(_spread(spread) or {})} for name, spread in latency.shares],
    }


def _timeline(report: Report) -> dict[str, Any] | None:
    if report.timeline is None:
        return None
    spans = [{"at": int(sums.key)} | _sums(sums) for sums in report.timeline.spans]
    return {"seconds": report.timeline.width, "spans": spans}


def _gap(gap: Gap) -> dict[str, Any]:
    return {
        "prompt": gap.prompt,
        "read": gap.read,
        "lost": gap.lost,
        "coverage": gap.coverage,
        "ceiling": gap.ceiling,
        "actual": gap.actual,
        "causes": [
            {
                "cause": loss.cause.value,
                "requests": loss.requests,
                "tokens": loss.tokens,
                "inferred": loss.inferred,
                "avoidable": loss.avoidable,
                "money": _money(loss.money),
            }
            for loss in gap.losses
        ],
    }


def _finding(one: SessionFinding) -> dict[str, Any]:
    return {
        "pattern": one.pattern.value,
        "session": one.session,
        "tenant": one.tenant,
        "model": one.model,
        "turns": one.turns,
        "lost_estimate": one.lost,
        "at": one.at,
        "changes": one.changes,
        "every_seconds": one.every,
    }


def _offender(one: Offender) -> dict[str, Any]:
    return {
        "prompt": one.label,
        "reason": one.reason,
        "detail": one.detail,
        "requests": one.requests,
        "lost" if one.reason is not None else "computed": one.tokens,
        "lost_money": _money(one.money),
        "path": one.path,
        "advice_en": one.advice_en,
        "advice_zh": one.advice_zh,
    }


def _sessions(sessions: Sessions) -> dict[str, Any]:
    return {
        "count": sessions.count,
        "totals": {pattern.value: count for pattern, count in sessions.totals.items()},
        "findings": [_finding(one) for one in sessions.findings],
    }


def _note(note: Note) -> dict[str, Any]:
    return {
        "kind": note.kind,
        "subject": note.subject,
        "count": note.count,
        "place": note.place,
        "text": note_told(note, Language.EN),
    }
