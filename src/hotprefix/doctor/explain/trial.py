"""Requests of a file, one after the other, under the server's own rules, over a cache that never is full."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, TypeVar

from hotprefix.api.session_header import SESSION_HEADER
from hotprefix.base.errors import InvalidRequest, LogicError
from hotprefix.base.ids import BlockKey
from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.diagnosis.explain import explain
from hotprefix.diagnosis.facts import MissFacts
from hotprefix.diagnosis.memory import MemoryLimits, SnapshotMemory
from hotprefix.diagnosis.reason import Evidence, MissReport, Reason
from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.explain.prefixes import PrefixSet
from hotprefix.doctor.explain.reported import Reported, reported_of, tolerance_of
from hotprefix.doctor.place import Place
from hotprefix.doctor.rendering import Rendered, UnrenderableRequest
from hotprefix.modes.caching import Caching
from hotprefix.modes.classes import Mode, TokenClasses
from hotprefix.modes.doctor import Case, Doctor
from hotprefix.modes.entries import EntryBook
from hotprefix.modes.turn import Turn

_T = TypeVar("_T")

_BLOCK = 16
_ENTRIES = 100_000
_OPEN_MOST = 256
"""Requests that may be under way at once."""
_TICK = 1e-6
"""Seconds by which requests are set apart whose times are unknown or equal."""
_LIMITS = MemoryLimits(snapshots=4_096, bytes=128 << 20, tenants=1)
_ROOT = BlockKey(blake2b(b"hotprefix/doctor", digest_size=32).digest())


@dataclass(frozen=True, slots=True)
class Judged:
    """One request. `expected` is what the profile's rules give; `report` says the same of what the vendor
    reported, and is `expected` where it reported nothing. `classes` are the expected classes of tokens,
    `earlier` is the request that it resembles most. `warnings` name what has no effect."""

    rendered: Rendered
    mode: Mode
    classes: TokenClasses
    expected: MissReport
    report: MissReport
    reported: Reported | None
    earlier: Place | None
    currency: str
    warnings: tuple[str, ...]

    @property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.rendered.prompt.token_ids)


class Trial:
    """Judges requests in the order of their times. Entries of explicit and session caches live as long as
    the profile says, where requests have times; nothing else ends. `wall` is the Unix time of requests
    without one."""

    def __init__(self, *, estimates: bool, wall: float) -> None:
        self._clock = _LogClock(wall)
        self._caching = Caching(EntryBook(_ENTRIES), _EndlessPinner(), self._clock, _BLOCK)
        self._doctor = Doctor(SnapshotMemory(_LIMITS), self._caching, self._clock, EvictionLog())
        self._prefixes = PrefixSet()
        self._open: list[tuple[float, int, _Asked]] = []
        self._count = 0
        self._places: OrderedDict[float, Place] = OrderedDict()
        self._estimates = estimates

    def judge(self, rendered: Rendered) -> Judged:
        """Raises `UnrenderableRequest` if the vendor refuses the request's markers."""
        recorded = rendered.recorded
        self._clock.reach(recorded.at)
        self._close_until(self._clock.now())
        try:
            turn = self._caching.begin(rendered.turn)
        except InvalidRequest as error:
            raise UnrenderableRequest(
                f"{recorded.place}: the vendor refuses this request: {error}"
            ) from error
        asked = self._ask(turn, rendered)
        judged = self._report(asked, rendered)
        ends = self._clock.now() + (recorded.first_token or 0.0 if recorded.at is not None else 0.0)
        self._count += 1
        heapq.heappush(self._open, (ends, self._count, asked))
        self._close_until(self._clock.now())
        self._remember_place(asked.case.snapshot.at, recorded.place)
        return judged

    def _ask(self, turn: Turn, rendered: Rendered) -> _Asked:
        case = self._doctor.open(turn)
        reused = max(case.comparison.shared, self._prefixes.known(case.block_keys) * _BLOCK)
        # The last token is always computed: an answer is drawn from it.
        reused = min(reused, len(rendered.prompt.token_ids) - 1)
        return _Asked(turn, case, reused, self._caching.expected(turn, reused), rendered.answer)

    def _report(self, asked: _Asked, rendered: Rendered) -> Judged:
        turn, case, classes = asked.turn, asked.case, asked.classes
        facts = self._doctor.facts(case, classes)
        conflict = _conflict(rendered, turn.mode)
        facts = replace(facts, markers=replace(facts.markers, conflict=conflict))
        expected = self._honest(explain(facts))
        reported = reported_of(rendered.recorded)
        report = expected if reported is None else self._honest(explain(self._as_reported(facts, reported)))
        earlier = case.earlier
        return Judged(
            rendered,
            turn.mode,
            classes,
            expected,
            report,
            reported,
            self._places.get(earlier.at) if earlier is not None else None,
            self._doctor.currency(turn),
            tuple(dict.fromkeys((*turn.warnings, *_without_effect(rendered)))),
        )

    def _as_reported(self, facts: MissFacts, reported: Reported) -> MissFacts:
        tokens, expected = facts.snapshot.tokens, facts.matched or 0
        tolerance = tolerance_of(estimates=self._estimates)
        matched = reported.matched(tokens, expected, facts.rules.quantum, tolerance=tolerance)
        is_best_effort = facts.mode == Mode.IMPLICIT
        return replace(facts, matched=matched, is_best_effort=is_best_effort)

    def _honest(self, report: MissReport) -> MissReport:
        """A file has no log of the store, and estimates prove nothing about sizes."""
        is_estimated = self._estimates and report.reason is Reason.BELOW_MIN
        if report.evidence is Evidence.STORE_LOG or is_estimated:
            return replace(report, evidence=Evidence.INFERRED)
        return report

    def _close_until(self, now: float) -> None:
        """Requests that have ended leave behind what they wrote."""
        while self._open and (self._open[0][0] <= now or len(self._open) > _OPEN_MOST):
            _, _, asked = heapq.heappop(self._open)
            classes = _at_once(self._caching.finish(asked.turn, asked.reused, 0))
            self._prefixes.add(asked.case.block_keys)
            self._doctor.close(asked.case, classes, asked.answer)

    def _remember_place(self, at: float, place: Place) -> None:
        self._places[at] = place
        if len(self._places) > 2 * _LIMITS.snapshots:
            self._places.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request under way."""

    turn: Turn
    case: Case
    reused: int
    classes: TokenClasses
    answer: tuple[str, tuple[int, ...]]


class _LogClock:
    """Goes where requests say, never back, and a tick further with each."""

    def __init__(self, wall: float) -> None:
        self._now = wall
        self._has_begun = False

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._now

    def reach(self, at: float | None) -> None:
        """A request comes in at that time, or an unknown one."""
        if self._has_begun:
            self._now = max(self._now + _TICK, at or 0.0)
        elif at is not None:
            self._now = at
        self._has_begun = True


class _EndlessPinner:
    """Room for everything, and one tenant."""

    def root_for(self, tenant: str) -> BlockKey:
        return _ROOT

    async def pin(self, name: str, tenant: str, token_ids: Sequence[int]) -> int:
        return len(token_ids)

    def unpin(self, name: str) -> None:
        pass


def _conflict(rendered: Rendered, mode: Mode) -> str:
    """Modes that one request asked for and that exclude each other, or that its API does not have."""
    wants_session = rendered.recorded.headers.get(SESSION_HEADER, "").strip().lower() == "enable"
    if rendered.recorded.dialect is Dialect.RESPONSES:
        return f"explicit/{mode}" if rendered.marks else ""
    return f"session/{mode}" if wants_session and rendered.profile.session is not None else ""


def _without_effect(rendered: Rendered) -> list[str]:
    if rendered.recorded.dialect is not Dialect.RESPONSES:
        return []
    return [
        f"{mark} has no effect: Responses take the header {SESSION_HEADER}: enable" for mark in rendered.marks
    ]


def _at_once(work: Coroutine[Any, Any, _T]) -> _T:
    """The result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as end:
        result: _T = end.value
        return result
    work.close()
    raise LogicError("a cache without an engine waits for something")
