"""Markers over several requests: written and never read, left behind, out of reach."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hotprefix.diagnosis.compare import Comparison
from hotprefix.diagnosis.facts import EXPLICIT, rules_of
from hotprefix.diagnosis.marker_rules import MANY_WRITES, marker_stays
from hotprefix.diagnosis.snapshot import PromptSnapshot
from hotprefix.doctor.lint.context import Context
from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.snapshots import Taken

_CALL = ".tool_calls["


@dataclass(slots=True)
class MarkerWatch:
    """Counts, for each beginning of prompts, the writes in a row that no one read."""

    _writes: dict[bytes, int] = field(default_factory=dict)
    _frozen: dict[bytes, int] = field(default_factory=dict)

    def look(
        self, context: Context, taken: Taken, earlier: PromptSnapshot, comparison: Comparison, place: str
    ) -> Iterator[LintFinding]:
        """Two requests with markers that agree as far as their markers reach."""
        rules = rules_of(context.profile, EXPLICIT, context.request.model)
        if not taken.snapshot.markers:
            return
        beginning = taken.snapshot.blocks[0].body.digest
        if comparison.usable:
            self._writes.pop(beginning, None)
            yield from _out_of_reach(context, taken, comparison, place)
        elif comparison.shared >= rules.minimum:
            times = self._writes[beginning] = self._writes.get(beginning, 1) + 1
            if times == MANY_WRITES:
                path = taken.paths[taken.snapshot.blocks[taken.snapshot.markers[-1]].path]
                yield replace(context.finding("HP311", path, times=times), is_observed=True)
        yield from self._left_behind(context, taken, earlier, rules.minimum)

    def _left_behind(
        self, context: Context, taken: Taken, earlier: PromptSnapshot, minimum: int
    ) -> Iterator[LintFinding]:
        new = taken.snapshot
        last = new.markers[-1]
        beginning = new.blocks[0].body.digest
        if not marker_stays(earlier, new):
            self._frozen.pop(beginning, None)
            return
        times = self._frozen[beginning] = self._frozen.get(beginning, 1) + 1
        behind = earlier.tokens - new.blocks[last].end_token
        if times == MANY_WRITES and behind >= minimum:
            path = taken.paths[new.blocks[last].path]
            yield replace(context.finding("HP313", path, lost=behind), is_observed=True)


def _out_of_reach(
    context: Context, taken: Taken, comparison: Comparison, place: str
) -> Iterator[LintFinding]:
    """The longest entry that fits lies behind more blocks than are searched. Calls are no content blocks."""
    rules = rules_of(context.profile, EXPLICIT, context.request.model)
    if rules.lookback is None:
        return
    blocks = taken.snapshot.blocks
    entry = next((i for i, block in enumerate(blocks) if block.end_token >= comparison.usable), None)
    if entry is None:
        return
    distances = [
        sum(_CALL not in block.path for block in blocks[entry + 1 : marker + 1])
        for marker in taken.snapshot.markers
        if marker >= entry
    ]
    reach = rules.lookback - (1 if rules.lookback_counts_marker else 0)
    if distances and min(distances) > reach:
        path = taken.paths[blocks[taken.snapshot.markers[-1]].path]
        found = context.finding("HP312", path, behind=min(distances), reach=reach, earlier=place)
        yield replace(found, is_observed=True)
