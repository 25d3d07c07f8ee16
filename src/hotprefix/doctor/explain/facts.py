"""Explanations as JSON."""

from __future__ import annotations

from typing import Any

from hotprefix.diagnosis.reason import MissReport
from hotprefix.doctor.explain.difference import Difference, Part, plain
from hotprefix.doctor.explain.log import LogExplanation, Sum
from hotprefix.doctor.explain.pair import Pair
from hotprefix.doctor.explain.stages import Stage
from hotprefix.doctor.explain.trial import Judged

Facts = dict[str, Any]


def pair_facts(pair: Pair) -> Facts:
    """Both requests, the stages, and the verdict on the later one."""
    reach = pair.reach
    return {
        "before": _request(pair.old),
        "after": _request(pair.new),
        "stages": [_stage(stage) for stage in pair.stages],
        "rules": {
            "profile": pair.new.rendered.profile.name,
            "mode": str(reach.mode),
            "minimum": reach.minimum,
            "quantum": reach.quantum,
            "last_marker_tokens": reach.marker,
            "last_marker_path": reach.marker_path or None,
            "lookback": reach.lookback,
        },
        "is_behind_last_marker": pair.is_behind_marker,
        "verdict": report_facts(pair.new.report, pair.new.currency),
        "expected": report_facts(pair.new.expected, pair.new.currency),
        "reported": _reported(pair.new),
        "notes": list(pair.notes),
    }


def log_facts(log: LogExplanation, worst: int) -> Facts:
    """Totals, reasons, and the `worst` causes."""
    return {
        "requests": log.requests,
        "unread": log.unread,
        "sessions": log.sessions,
        "profiles": dict(log.profiles),
        "reported": log.reported,
        "tokens": {
            "prompt": log.tokens,
            "expected_read": log.expected,
            "read": log.read,
            "lost": log.lost,
            "avoidable": log.avoidable.lost,
        },
        "avoidable": sum_facts(log.avoidable),
        "reasons": {str(reason): sum_facts(found) for reason, found in log.reasons.items()},
        "causes": [
            {
                "reason": str(cause.reason),
                "detail": cause.detail,
                "path": cause.pattern,
                **sum_facts(cause.sum),
                "sample": {
                    "request": str(cause.place),
                    "earlier": str(cause.earlier) if cause.earlier is not None else None,
                    **report_facts(cause.sample, ""),
                },
            }
            for cause in log.worst(worst)
        ],
        "complaints": log.complaints,
        "notes": log.notes,
    }


def sum_facts(found: Sum) -> Facts:
    """Requests, tokens and money."""
    return {"requests": found.requests, "lost_tokens": found.lost, "lost_money": dict(found.money)}


def report_facts(report: MissReport, currency: str) -> Facts:
    """The verdict on one request."""
    divergence = report.divergence
    return {
        "reason": str(report.reason),
        "detail": report.detail,
        "matched_tokens": report.matched,
        "ideal_tokens": report.ideal,
        "lost_tokens": report.lost_tokens,
        "lost_money": report.lost_money,
        **({"currency": currency} if currency else {}),
        "avoidable": report.avoidable,
        "evidence": str(report.evidence),
        "divergence": None
        if divergence is None
        else {
            "path": divergence.path,
            "block": divergence.block,
            "token": divergence.token,
            "before": divergence.before,
            "after": divergence.after,
        },
        "advice": {"en": report.advice_en, "zh": report.advice_zh},
    }


def _request(judged: Judged) -> Facts:
    recorded = judged.rendered.recorded
    return {
        "place": str(recorded.place),
        "dialect": str(recorded.dialect),
        "model": recorded.model,
        "at": recorded.at,
        "session": recorded.session or None,
        "tokens": judged.tokens,
        "mode": str(judged.mode),
    }


def _stage(stage: Stage) -> Facts:
    return {
        "stage": str(stage.name),
        "is_equal": stage.is_equal,
        "is_continued": stage.is_continued,
        "shared": stage.shared,
        "sizes": list(stage.sizes),
        "note": stage.note,
        "difference": None if stage.difference is None else _difference(stage.difference),
    }


def _difference(found: Difference) -> Facts:
    return {
        "at": found.at,
        "path": found.path,
        "before": plain(found.before),
        "after": plain(found.after),
        "removed": [piece.text for piece in found.before if piece.part is Part.GONE],
        "added": [piece.text for piece in found.after if piece.part is Part.NEW],
    }


def _reported(judged: Judged) -> Facts | None:
    if judged.reported is None:
        return None
    return {"prompt_tokens": judged.reported.prompt, "read_tokens": judged.reported.read}
