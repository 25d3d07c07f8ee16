"""Reasons that lie in the rules for markers and sizes."""

from __future__ import annotations

from hotprefix.diagnosis.alignment import parting
from hotprefix.diagnosis.facts import EXPLICIT, IMPLICIT
from hotprefix.diagnosis.finding import Finding, View
from hotprefix.diagnosis.reason import Evidence, Reason
from hotprefix.diagnosis.snapshot import PromptSnapshot

MANY_WRITES = 3
"""Entries written in a row without a read, from which on the marker is in the wrong place."""


def no_marker(view: View) -> Finding | None:
    """The model caches only what is marked."""
    if not view.facts.markers.is_needed:
        return None
    return Finding(Reason.NO_MARKER, view.shared, Evidence.BYTES, "NEEDS_EXPLICIT")


def too_many_markers(view: View) -> Finding | None:
    """Markers beyond the limit did not count."""
    markers = view.facts.markers
    if not markers.ignored:
        return None
    paths = ", ".join(markers.ignored)
    words: dict[str, str | int] = {"most": markers.most, "ignored": paths}
    return Finding(Reason.TOO_MANY_MARKERS, view.shared, Evidence.BYTES, paths, words=words)


def lookback_exceeded(view: View) -> Finding | None:
    """The entry exists, but more blocks behind the marker than are searched."""
    rules = view.facts.rules
    behind = view.facts.markers.blocks_behind
    if behind is None:
        behind = blocks_behind(view)
    if behind is None or rules.lookback is None:
        return None
    reach = rules.lookback - (1 if rules.lookback_counts_marker else 0)
    if behind <= reach:
        return None
    words: dict[str, str | int] = {"behind": behind, "reach": reach}
    return Finding(Reason.LOOKBACK_EXCEEDED, view.usable, Evidence.BYTES, f"{behind} of {reach}", words=words)


def blocks_behind(view: View) -> int | None:
    """How many blocks the longest usable entry lies behind the nearest marker that could read it."""
    if view.facts.mode != EXPLICIT or not view.comparison.usable:
        return None
    blocks = view.facts.snapshot.blocks
    entry = next((i for i, block in enumerate(blocks) if block.end_token >= view.comparison.usable), None)
    if entry is None:
        return None
    return min((marker - entry for marker in view.facts.snapshot.markers if marker >= entry), default=None)


def below_minimum(view: View) -> Finding | None:
    """The prefix is too short to be cached."""
    facts = view.facts
    missing = facts.markers.missing
    if missing is None:
        missing = _missing(view)
    if missing is None or missing <= 0 or view.matched:
        return None
    words: dict[str, str | int] = {"missing": missing, "minimum": facts.rules.minimum}
    return Finding(
        Reason.BELOW_MIN, view.shared, Evidence.BYTES, str(missing), is_avoidable=facts.is_marked, words=words
    )


def _missing(view: View) -> int | None:
    facts, minimum = view.facts, view.facts.rules.minimum
    if facts.is_marked:
        return minimum - _marked_tokens(facts.snapshot) if facts.snapshot.markers else None
    if facts.mode != IMPLICIT:
        return None
    if facts.snapshot.tokens < minimum:
        return minimum - facts.snapshot.tokens
    return minimum - view.usable if view.usable >= facts.least else None


def _marked_tokens(snapshot: PromptSnapshot) -> int:
    return snapshot.blocks[snapshot.markers[-1]].end_token


def write_only(view: View) -> Finding | None:
    """Every request writes an entry that no other one reads."""
    writes = view.facts.markers.writes_unread
    if writes < MANY_WRITES or view.matched:
        return None
    return Finding(Reason.WRITE_ONLY, view.shared, Evidence.STORE_LOG, str(writes), words={"writes": writes})


def frozen_markers(view: View) -> Finding | None:
    """The last marker stays where it was while the conversation grows."""
    if not view.facts.markers.is_frozen:
        return None
    return Finding(Reason.FROZEN_MARKERS, view.shared, Evidence.BYTES)


def marker_stays(old: PromptSnapshot, new: PromptSnapshot) -> bool:
    """Whether a conversation went on and its last marker is where it was."""
    if not old.markers or not new.markers or old.markers[-1] != new.markers[-1]:
        return False
    # What was answered may come back as other tokens; that is no other conversation.
    return len(new.blocks) > len(old.blocks) and parting(old.blocks[:-1], new.blocks) is None


def mode_conflict(view: View) -> Finding | None:
    """Two modes were asked for that exclude each other, or one that the API does not have."""
    conflict = view.facts.markers.conflict
    if not conflict:
        return None
    return Finding(Reason.MODE_CONFLICT, view.shared, Evidence.BYTES, conflict, words={"conflict": conflict})


def model_not_supported(view: View) -> Finding | None:
    """The model has no such cache."""
    if not view.facts.markers.is_unsupported:
        return None
    return Finding(Reason.MODEL_NOT_SUPPORTED, view.shared, Evidence.BYTES)
