"""From facts to the one reason why not more of a prompt came from the cache."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hotprefix.diagnosis import marker_rules as markers
from hotprefix.diagnosis import store_rules as store
from hotprefix.diagnosis.advice import advice_for
from hotprefix.diagnosis.facts import MissFacts
from hotprefix.diagnosis.finding import Finding, View, view
from hotprefix.diagnosis.reason import Evidence, MissReport, Reason

_Rule = Callable[[View], Finding | None]

_UNAVOIDABLE = (Reason.EXPECTED_TEMPLATE, Reason.GENERATION_PROMPT, Reason.RETOKENISED)


def explain(facts: MissFacts) -> MissReport:
    """The first reason that holds, in the taxonomy's order; `UNKNOWN` rather than a guess."""
    seen = view(facts)
    if facts.matched is None:
        return _report(seen, Finding(Reason.NOT_REPORTED, 0, Evidence.INFERRED, is_avoidable=False))
    return _report(seen, _first(_RULES, seen) or _unknown(seen))


def redacted(report: MissReport) -> MissReport:
    """The report without the prompt's words: their lengths stand in their place."""
    found = report.divergence
    if found is None:
        return report
    before, after = (f"<{len(text)} characters>" if text else "" for text in (found.before, found.after))
    return replace(report, divergence=replace(found, before=before, after=after))


def _request_side(seen: View) -> Finding | None:
    """Reasons of the first two groups: proved by comparing with the earlier prompt."""
    change, ideal = seen.comparison.change, seen.comparison.ideal
    if change is None or ideal - seen.matched < seen.facts.least:
        return None
    old, new = seen.facts.earlier, seen.facts.snapshot
    words: dict[str, str | int] = {"path": change.divergence.path, "subject": change.subject}
    words |= {"old_model": old.model if old is not None else "", "new_model": new.model}
    return Finding(
        change.reason,
        ideal,
        Evidence.BYTES,
        change.detail,
        is_avoidable=change.reason not in _UNAVOIDABLE,
        divergence=change.divergence,
        words=words,
    )


def _nothing_lost(seen: View) -> Finding | None:
    if not seen.matched or not seen.has_all:
        return None
    return Finding(Reason.NONE, seen.matched, Evidence.STORE_LOG, is_avoidable=False)


def _frozen(seen: View) -> Finding | None:
    return markers.frozen_markers(seen) if seen.shared - seen.matched >= seen.facts.least else None


def _hidden_parameter(seen: View) -> Finding | None:
    """A parameter that leaves no trace in the prompt, but may stand in the cache's key."""
    name = seen.comparison.hidden
    if not name or not seen.facts.store.is_silent or seen.usable < seen.facts.least:
        return None
    words: dict[str, str | int] = {"path": f"parameters.{name}", "subject": name}
    return Finding(Reason.PARAM_CHANGED, seen.usable, Evidence.INFERRED, name, words=words)


def _unknown(seen: View) -> Finding:
    return Finding(Reason.UNKNOWN, seen.usable, Evidence.INFERRED, is_avoidable=False)


_RULES: Sequence[_Rule] = (
    _request_side,
    _frozen,
    _nothing_lost,
    _hidden_parameter,
    markers.no_marker,
    markers.too_many_markers,
    markers.lookback_exceeded,
    markers.below_minimum,
    markers.write_only,
    markers.mode_conflict,
    markers.model_not_supported,
    store.cold_first_use,
    store.write_pending,
    store.expired,
    store.evicted,
    store.flushed,
    store.store_failed,
    store.restart_lost,
    store.below_block,
    store.no_rollback,
    store.state_missing,
    store.feature_disabled,
    store.routed_elsewhere,
    store.router_blind,
    store.best_effort,
    store.maybe_evicted,
)


def _first(rules: Sequence[_Rule], seen: View) -> Finding | None:
    return next((found for rule in rules if (found := rule(seen)) is not None), None)


def _report(seen: View, finding: Finding) -> MissReport:
    ideal = max(finding.ideal, seen.matched)
    lost = 0 if finding.reason is Reason.NOT_REPORTED else ideal - seen.matched
    words = {"matched": seen.matched, "ideal": ideal, "lost": lost, "detail": finding.detail, **finding.words}
    english, chinese = advice_for(finding.reason, finding.detail, words)
    return MissReport(
        reason=finding.reason,
        detail=finding.detail,
        matched=seen.matched,
        ideal=ideal,
        lost_tokens=lost,
        lost_money=lost * seen.facts.money_per_million / 1_000_000,
        avoidable=finding.is_avoidable,
        evidence=finding.evidence,
        divergence=finding.divergence,
        advice_en=english,
        advice_zh=chinese,
    )
