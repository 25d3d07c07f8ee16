"""What changed from one request of a file to the next. Nothing is accused that was not seen to change."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from hotprefix.diagnosis.alignment import parting
from hotprefix.diagnosis.compare import Change, Comparison, Scope, compare
from hotprefix.diagnosis.facts import EXPLICIT
from hotprefix.diagnosis.memory import SnapshotMemory
from hotprefix.diagnosis.reason import Reason
from hotprefix.diagnosis.snapshot import PromptSnapshot
from hotprefix.doctor.lint.checks.session import SALTS, session_of
from hotprefix.doctor.lint.context import Context
from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.marker_watch import MarkerWatch
from hotprefix.doctor.lint.observed_fixes import fix_of
from hotprefix.doctor.lint.phrase import lost_tokens
from hotprefix.doctor.lint.snapshots import Taken, take
from hotprefix.doctor.place import Place

_LEAST = 32
_MANY = 3
_ALIKE = 0.5
_ANYONE = ""
_KEPT = 2_000
"""Requests of which more is kept than their snapshots, for fixes."""
_VOLATILE = ("VOLATILE_TIME", "VOLATILE_ENV", "VOLATILE_ID", "KNOWN_CLIENT_HEADER")
_RULES = {
    Reason.SYSTEM_CHANGED: "HP111",
    Reason.TOOLS_REORDERED: "HP112",
    Reason.TOOLS_CHANGED: "HP113",
    Reason.HEAD_TRIMMED: "HP114",
    Reason.BLOCK_VANISHED: "HP115",
    Reason.BLOCK_INSERTED: "HP116",
    Reason.HISTORY_EDITED: "HP117",
    Reason.ARG_KEY_ORDER: "HP118",
    Reason.WHITESPACE_ONLY: "HP119",
    Reason.IMAGE_REPLACED: "HP120",
    Reason.MODEL_CHANGED: "HP121",
    Reason.ROLE_CHANGED: "HP123",
}


@dataclass(slots=True)
class _Seen:
    """Digests of what stands before the messages."""

    place: Place
    system: bytes
    tools: bytes


@dataclass(slots=True)
class _Pending:
    """A change that is none if both versions turn out to be in use side by side."""

    finding: LintFinding
    old: bytes
    new: bytes


@dataclass(slots=True)
class Observer:
    """Looks at the requests of one file in their order."""

    _memory: SnapshotMemory = field(default_factory=SnapshotMemory)
    _seen: list[_Seen] = field(default_factory=list)
    _uses: Counter[bytes] = field(default_factory=Counter)
    _pending: list[_Pending] = field(default_factory=list)
    _sessions: dict[str, tuple[Place, str]] = field(default_factory=dict)
    _salts: dict[tuple[str, bytes, bytes], list[tuple[str, Place]]] = field(default_factory=dict)
    _markers: MarkerWatch = field(default_factory=MarkerWatch)
    _contexts: dict[int, Context] = field(default_factory=dict)
    _first: Context | None = None

    def look(self, context: Context) -> Iterator[LintFinding]:
        """Findings about this request and an earlier one."""
        if self._first is None and not self._seen:
            self._first = context  # a file with one request needs no comparing
            return
        if self._first is not None:
            first, self._first = self._first, None
            yield from self._look(first)
        yield from self._look(context)

    def _look(self, context: Context) -> Iterator[LintFinding]:
        path, session = session_of(context.request)
        taken = take(context, len(self._seen), session)
        place = context.request.recorded.place
        seen = _Seen(place, _digest(context.request.system_text), taken.snapshot.tools.digest)
        earlier = self._memory.nearest(_ANYONE, taken.snapshot)
        if earlier is not None:
            yield from self._compared(context, taken, earlier)
        if session:
            yield from self._session(context, path, session)
        self._salted(context, seen)
        self._contexts[len(self._seen)] = context
        self._contexts.pop(len(self._seen) - _KEPT, None)
        self._seen.append(seen)
        self._uses.update((seen.system, seen.tools))
        self._memory.remember(_ANYONE, taken.snapshot)

    def finish(self) -> Iterator[LintFinding]:
        """What only all requests together show."""
        for pending in self._pending:
            if self._uses[pending.old] < 2 or self._uses[pending.new] < 2:
                yield pending.finding
        for (name, _system, _tools), uses in self._salts.items():
            values = [value for value, _ in uses]
            if len(values) >= _MANY and len(set(values)) == len(values):
                context = self._contexts[len(self._seen) - 1]
                shown = ", ".join(values[:_MANY])
                found = context.finding("HP603", uses[1][1], field=name, shown=shown)
                yield replace(found, is_observed=True)

    def _compared(self, context: Context, taken: Taken, earlier: PromptSnapshot) -> Iterator[LintFinding]:
        new = taken.snapshot
        is_marked = context.mode == EXPLICIT and bool(earlier.markers)
        rules = context.profile.explicit
        minimum = rules.minimum_for(new.model) if is_marked and rules else 0
        comparison = compare(earlier, new, Scope(is_marked, minimum, _LEAST))
        if comparison.change is not None:
            yield from self._changed(context, taken, earlier, comparison, comparison.change)
            return
        old_place = self._seen[int(earlier.at)].place
        if is_marked:
            yield from self._markers.look(context, taken, earlier, comparison, str(old_place))
        goes_on = parting(earlier.blocks, new.blocks) is None and len(new.blocks) > len(earlier.blocks)
        if comparison.hidden and goes_on and comparison.shared >= _LEAST:
            found = context.finding(
                "HP122",
                f"{context.request.settings_root}{comparison.hidden}",
                detail=comparison.hidden,
                earlier=str(old_place),
            )
            yield replace(found, is_observed=True)

    def _changed(
        self,
        context: Context,
        taken: Taken,
        earlier: PromptSnapshot,
        comparison: Comparison,
        change: Change,
    ) -> Iterator[LintFinding]:
        rule = _RULES.get(change.reason)
        if rule is None or (change.reason is Reason.MODEL_CHANGED and not _goes_on(earlier, taken.snapshot)):
            return
        before = self._seen[int(earlier.at)]
        path = _real_path(change.divergence.path, taken)
        lost = comparison.ideal - comparison.usable
        found = context.finding(
            rule,
            path,
            fix=fix_of(context, change, path, self._contexts.get(int(earlier.at))),
            earlier=str(before.place),
            detail=change.detail or str(change.reason),
            before=_quoted(change.divergence.before),
            after=_quoted(change.divergence.after),
            loss=lost_tokens(lost, comparison.usable, is_exact=context.ruler.is_exact),
            lost=lost,
            usable=comparison.usable,
        )
        found = replace(found, is_observed=True)
        pending = _variants(change, found, before, context, taken)
        if pending is not None:
            self._pending.append(pending)
        else:
            yield found

    def _session(self, context: Context, path: str, session: str) -> Iterator[LintFinding]:
        text = context.request.system_text
        if not text or (session not in self._sessions and len(self._sessions) >= _KEPT):
            return
        place, first = self._sessions.setdefault(session, (context.request.recorded.place, text))
        if first != text and _likeness(first, text) < _ALIKE:
            found = context.finding("HP601", path, shown=session, earlier=str(place))
            yield replace(found, is_observed=True)

    def _salted(self, context: Context, seen: _Seen) -> None:
        for name in SALTS:
            value = context.request.settings.get(name)
            if isinstance(value, str) and value:
                key = (name, seen.system, seen.tools)
                self._salts.setdefault(key, []).append((value, context.request.source.place(name)))


def _variants(
    change: Change, found: LintFinding, before: _Seen, context: Context, taken: Taken
) -> _Pending | None:
    """Two prompts or two sets of tools that are both used again are two scenes, and no change."""
    if change.reason is Reason.SYSTEM_CHANGED and change.detail not in _VOLATILE:
        return _Pending(found, before.system, _digest(context.request.system_text))
    if change.reason is Reason.TOOLS_CHANGED:
        return _Pending(found, before.tools, taken.snapshot.tools.digest)
    return None


def _goes_on(old: PromptSnapshot, new: PromptSnapshot) -> bool:
    """Whether a prompt holds all of an earlier one's blocks and an answer to it."""
    blocks = old.blocks[:-1]
    return (
        len(new.blocks) - 1 > len(blocks)
        and all(a.body.text_digest == b.body.text_digest for a, b in zip(blocks, new.blocks, strict=False))
        and any(block.role == "assistant" for block in new.blocks[len(blocks) : -1])
    )


def _real_path(path: str, taken: Taken) -> str:
    """The path in the request of a path in the snapshot."""
    if path in taken.paths:
        return taken.paths[path]
    head = max((short for short in taken.paths if path.startswith(short)), key=len, default="")
    return taken.paths[head] + path[len(head) :] if head else path


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _likeness(one: str, other: str) -> float:
    """The share of words that two texts have in common."""
    words, others = (set(re.findall(r"\w+", text)) for text in (one, other))
    return len(words & others) / max(1, len(words | others))


def _quoted(text: str) -> str:
    return f"“{text.strip()}”" if text.strip() else "“”"
