"""A whole log: which reasons cost most, and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from hotprefix.diagnosis.explain import redacted
from hotprefix.diagnosis.reason import MissReport, Reason
from hotprefix.doctor.explain.trial import Judged, Trial
from hotprefix.doctor.place import Place
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rendering import Renderer, UnrenderableRequest

_CAUSES = 10_000
_TOLD = 5
_ELSEWHERE = "…"
_NUMBER = re.compile(r"\[\d+\]")


@dataclass(slots=True)
class Sum:
    """Losses of some requests; `money` by currency."""

    requests: int = 0
    lost: int = 0
    money: dict[str, float] = field(default_factory=dict)

    def add(self, judged: Judged) -> None:
        """One request more."""
        self.requests += 1
        self.lost += judged.report.lost_tokens
        if judged.report.lost_money:
            known = self.money.get(judged.currency, 0.0)
            self.money[judged.currency] = known + judged.report.lost_money


@dataclass(slots=True)
class Cause:
    """Requests that lost for the same reason at the same place. `pattern` is the JSON path with a star for
    numbers; the sample is the request that lost most."""

    reason: Reason
    detail: str
    pattern: str
    sum: Sum
    sample: MissReport
    place: Place
    earlier: Place | None


@dataclass(slots=True)
class LogExplanation:
    """Tokens are those of all prompts: `expected` would have been read by the profile's rules, `read` were,
    as far as `reported` requests say, and `lost` could have been."""

    requests: int = 0
    reported: int = 0
    sessions: int = 0
    tokens: int = 0
    expected: int = 0
    read: int = 0
    lost: int = 0
    avoidable: Sum = field(default_factory=Sum)
    reasons: dict[Reason, Sum] = field(default_factory=dict)
    causes: dict[tuple[Reason, str, str], Cause] = field(default_factory=dict)
    profiles: Counter[str] = field(default_factory=Counter)
    unread: int = 0
    complaints: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, judged: Judged) -> None:
        """One request more."""
        report = judged.report
        self.requests += 1
        self.reported += judged.reported is not None
        self.tokens += judged.tokens
        self.expected += judged.expected.matched
        self.read += report.matched
        self.lost += report.lost_tokens
        self.profiles[judged.rendered.profile.name] += 1
        self.reasons.setdefault(report.reason, Sum()).add(judged)
        for note in (*judged.rendered.notes, *judged.warnings):
            if len(self.notes) < _TOLD and _NUMBER.sub("[*]", note) not in self.notes:
                self.notes.append(_NUMBER.sub("[*]", note))
        if report.avoidable and report.lost_tokens:
            self.avoidable.add(judged)
            self._blame(judged)

    def refuse(self, error: UnrenderableRequest) -> None:
        """A request that can't be read."""
        self.unread += 1
        if len(self.complaints) < _TOLD:
            self.complaints.append(str(error))

    def worst(self, count: int = 10) -> list[Cause]:
        """The causes that cost most tokens."""
        return sorted(self.causes.values(), key=lambda cause: -cause.sum.lost)[:count]

    def redacted(self) -> LogExplanation:
        """Without the words of the prompts."""
        causes = {key: replace(cause, sample=redacted(cause.sample)) for key, cause in self.causes.items()}
        return replace(self, causes=causes)

    def _blame(self, judged: Judged) -> None:
        report = judged.report
        path = report.divergence.path if report.divergence is not None else ""
        key = (report.reason, _named(report), _NUMBER.sub("[*]", path))
        if key not in self.causes and len(self.causes) >= _CAUSES:
            key = (report.reason, "", _ELSEWHERE)
        place, earlier = judged.rendered.recorded.place, judged.earlier
        cause = self.causes.get(key)
        if cause is None:
            cause = self.causes[key] = Cause(*key, Sum(), report, place, earlier)
        elif report.lost_tokens > cause.sample.lost_tokens:
            cause.sample, cause.place, cause.earlier = report, place, earlier
        cause.sum.add(judged)


def explain_log(
    renderer: Renderer, trial: Trial, requests: Iterable[Recorded], seen: Callable[[Recorded], None]
) -> LogExplanation:
    """Every request against the earlier ones; `seen` is called with each. Those that can't be read are
    counted and left out."""
    found = LogExplanation(notes=list(renderer.model.notes))
    sessions: set[int] = set()
    for recorded in requests:
        seen(recorded)
        try:
            judged = trial.judge(renderer.render(recorded))
        except UnrenderableRequest as error:
            found.refuse(error)
            continue
        found.add(judged)
        if recorded.session and len(sessions) < 1_000_000:
            sessions.add(hash(recorded.session))
    found.sessions = len(sessions)
    return found


def _named(report: MissReport) -> str:
    """The detail, if it names a kind of change rather than a number of the moment."""
    return report.detail if report.divergence is not None and not report.detail.isdigit() else ""
