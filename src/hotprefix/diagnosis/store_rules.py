"""Reasons that lie in the store, the engine or the place where a request ran."""

from __future__ import annotations

from hotprefix.diagnosis.facts import OFF, Eviction
from hotprefix.diagnosis.finding import Finding, View
from hotprefix.diagnosis.reason import Evidence, Reason

MARKER_MOVED = "MARKER_MOVED"


def cold_first_use(view: View) -> Finding | None:
    """Nobody of this tenant had this prefix before. What other tenants have is not said."""
    if view.matched or not view.facts.store.is_silent or view.usable >= view.facts.least:
        return None
    if _was_marked_later(view):
        return Finding(Reason.COLD_FIRST_USE, view.shared, Evidence.BYTES, MARKER_MOVED)
    return Finding(Reason.COLD_FIRST_USE, 0, Evidence.STORE_LOG, is_avoidable=False)


def _was_marked_later(view: View) -> bool:
    """Whether there is an entry, but all markers of this request lie before its end."""
    old, new = view.facts.earlier, view.facts.snapshot
    if old is None or not view.facts.is_marked or not (old.markers and new.markers):
        return False
    entry = old.blocks[old.markers[-1]].end_token
    return max(view.facts.rules.minimum, new.blocks[new.markers[-1]].end_token) < entry <= view.shared


def write_pending(view: View) -> Finding | None:
    """An equal prefix was being written at that moment."""
    if not view.facts.store.is_write_pending:
        return None
    return Finding(Reason.WRITE_PENDING, view.usable, Evidence.STORE_LOG)


def expired(view: View) -> Finding | None:
    """The entry's lifetime had ended, by the store's log or by what this prefix was promised."""
    store = view.facts.store
    if store.expired_for is not None:
        return _expired(view, store.expired_for, Evidence.STORE_LOG)
    until = _promised_until(view)
    now = view.facts.snapshot.at
    if not store.is_silent or until is None or until > now:
        return None
    return _expired(view, now - until, Evidence.INFERRED)


def _expired(view: View, age: float, evidence: Evidence) -> Finding:
    ttl = view.facts.store.ttl
    lifetime = f" of {ttl:.0f} s" if ttl is not None else ""
    words: dict[str, str | int] = {"age": f"{age:.0f}", "ttl": f"{ttl:.0f}" if ttl is not None else "?"}
    return Finding(
        Reason.TTL_EXPIRED, view.usable, evidence, f"{age:.0f} s after the end{lifetime}", words=words
    )


def _promised_until(view: View) -> float | None:
    """When the longest usable entry of the earlier prompt ends."""
    old = view.facts.earlier
    if old is None or not view.facts.is_marked:
        return None
    ends = {old.blocks[block].end_token: until for block, until in old.expires.items()}
    return ends.get(view.comparison.usable)


def evicted(view: View) -> Finding | None:
    """The entry had to make room."""
    cause = view.facts.store.evicted
    return Finding(Reason.EVICTED, view.usable, Evidence.STORE_LOG, str(cause)) if cause else None


def maybe_evicted(view: View) -> Finding | None:
    """Nothing else says where it went, and the log of evictions does not go back far enough."""
    if not view.facts.store.may_be_evicted or view.usable - view.matched < view.facts.least:
        return None
    return Finding(Reason.EVICTED, view.usable, Evidence.INFERRED, str(Eviction.CAPACITY))


def flushed(view: View) -> Finding | None:
    """Weights, template, adapter or format are others now."""
    cause = view.facts.store.flushed
    if not cause:
        return None
    return Finding(
        Reason.FLUSHED, view.usable, Evidence.STORE_LOG, cause, is_avoidable=False, words={"cause": cause}
    )


def store_failed(view: View) -> Finding | None:
    """The prefix could not be kept."""
    store = view.facts.store
    cause = store.failed or ("PIN_FAILED" if store.is_pin_failed else "")
    if not cause:
        return None
    return Finding(Reason.STORE_FAILED, view.usable, Evidence.STORE_LOG, cause, words={"cause": cause})


def restart_lost(view: View) -> Finding | None:
    """The server restarted without it."""
    if not view.facts.store.is_lost_at_restart:
        return None
    return Finding(Reason.RESTART_LOST, view.usable, Evidence.STORE_LOG, is_avoidable=False)


def below_block(view: View) -> Finding | None:
    """Less is shared than the engine reuses at least."""
    size = view.facts.engine.block_size
    if view.matched or not view.usable or view.usable >= size:
        return None
    words: dict[str, str | int] = {"block": size, "shared": view.usable}
    return Finding(Reason.BELOW_BLOCK, view.usable, Evidence.BYTES, f"{view.usable} of {size}", words=words)


def no_rollback(view: View) -> Finding | None:
    """The model's layers can't go back to where the prompts part."""
    kind = view.facts.engine.no_rollback
    if not kind:
        return None
    return Finding(Reason.NO_ROLLBACK, view.usable, Evidence.STORE_LOG, kind, False, words={"kind": kind})


def state_missing(view: View) -> Finding | None:
    """Part of what a prefix needs is gone."""
    what = view.facts.engine.missing_state
    if not what:
        return None
    return Finding(Reason.STATE_MISSING, view.usable, Evidence.STORE_LOG, what, False, words={"what": what})


def feature_disabled(view: View) -> Finding | None:
    """The cache is switched off."""
    name = view.facts.engine.disabled or ("no mode" if view.facts.mode == OFF else "")
    if not name:
        return None
    return Finding(Reason.FEATURE_DISABLED, view.usable, Evidence.STORE_LOG, name, words={"name": name})


def routed_elsewhere(view: View) -> Finding | None:
    """Another worker or key has the prefix."""
    worker = view.facts.placement.routed_elsewhere
    if not worker:
        return None
    return Finding(Reason.ROUTED_ELSEWHERE, view.usable, Evidence.STORE_LOG, worker, words={"worker": worker})


def router_blind(view: View) -> Finding | None:
    """The router could not see the prefix."""
    cause = view.facts.placement.router_blind
    if not cause:
        return None
    return Finding(Reason.ROUTER_BLIND, view.usable, Evidence.STORE_LOG, cause, words={"cause": cause})


def best_effort(view: View) -> Finding | None:
    """The upstream promises nothing for this mode."""
    if not view.facts.is_best_effort:
        return None
    return Finding(Reason.BEST_EFFORT, view.usable, Evidence.INFERRED, is_avoidable=False)
