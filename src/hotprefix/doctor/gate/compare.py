"""The two kinds of comparisons: revisions of a repository, and logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hotprefix.base.errors import HotprefixError
from hotprefix.diagnosis.text import common_length
from hotprefix.doctor.explain.difference import CONTEXT, Difference, first_difference
from hotprefix.doctor.explain.stages import block_at
from hotprefix.doctor.explain.trial import Trial
from hotprefix.doctor.gate.contexts import Context
from hotprefix.doctor.gate.repository import Repository, Revision
from hotprefix.doctor.gate.side import Side, keyed, measure, timeless
from hotprefix.doctor.gate.sources import Sources, holds_lines, is_prompt_file
from hotprefix.doctor.gate.verdict import Gate, Limits, grown_causes, worse_lines
from hotprefix.doctor.place import Place
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rendering import Renderer
from hotprefix.doctor.text_model import TextModel
from hotprefix.profiles.loader import ProfileBook

_WORST = 10
_SHALLOW = "git can't tell where {head} left {base}, so {base} itself is compared."
_ALONE = "Every file has only one request, which counts as sent twice: give contexts or whole conversations."


class NothingToCompare(HotprefixError):
    """Both sides have no requests in common."""


class UnreadableRevision(HotprefixError):
    """A file of a revision can't be read; the message names both."""


@dataclass(frozen=True, slots=True)
class Bench:
    """What both sides are measured with. `wall` is the Unix time that chooses prices."""

    model: TextModel
    book: ProfileBook
    profile: str | None
    wall: float

    def renderer(self) -> Renderer:
        """A new one: it remembers conversations of its own side only."""
        return Renderer(self.model, self.book, self.profile)

    def measure(self, name: str, requests: Iterable[tuple[str, Recorded]]) -> Side:
        """One side."""
        trial = Trial(estimates=self.model.is_estimate, wall=self.wall)
        return measure(name, self.renderer(), trial, requests)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is compared in a repository: `paths` at `base` (where `head` left it) and at `head`; templates
    are rendered with `contexts`, texts are sent to `request_model`."""

    base: str
    head: str
    paths: Sequence[str]
    contexts: Sequence[Context] = ()
    request_model: str = ""


def compare_logs(
    bench: Bench,
    before: tuple[str, Iterable[Recorded]],
    after: tuple[str, Iterable[Recorded]],
    limits: Limits,
) -> Gate:
    """Two logs, each with its name. Requests are compared one by one by their sessions, and without those by
    their numbers if there are as many on both sides."""
    old, new = (bench.measure(name, keyed(requests, _session)) for name, requests in (before, after))
    if not old.tokens or not new.tokens:
        raise NothingToCompare(f"{before[0]} or {after[0]} has no request that can be read.")
    if old.sums.requests != new.sums.requests:
        for side in (old, new):
            side.lines = {key: line for key, line in side.lines.items() if not key.startswith("#")}
    worse = worse_lines(old.lines, new.lines, None, _WORST)
    return Gate(old, new, limits, worse, grown_causes(old, new, _WORST), notes=_notes(old, new))


def compare_revisions(bench: Bench, repository: Repository, wanted: Wanted, limits: Limits) -> Gate:
    """Two revisions. Raises `GitTrouble`, `NothingToCompare`, and what reading files raises."""
    notes: list[str] = []
    head = repository.revision(wanted.head)
    base = _base(repository, wanted, head, notes)
    listed = [
        [path for path in repository.files(revision, wanted.paths) if is_prompt_file(path)]
        for revision in (base, head)
    ]
    both = set(listed[0]) & set(listed[1])
    common = [path for path in listed[0] if path in both]
    requests = [_requests(repository, revision, common, wanted) for revision in (base, head)]
    old, new = (
        bench.measure(str(revision), keyed(_flat(some), _owner))
        for revision, some in zip((base, head), requests, strict=True)
    )
    if not old.tokens or not new.tokens:
        raise NothingToCompare(
            f"No request or prompt under {', '.join(wanted.paths) or '.'} is both in {base} and in {head}."
        )
    if all(len(some) == 2 and some[0] is some[1] for some in requests[1].values() if some):
        notes.append(_ALONE)
    if new.sums.unread > old.sums.unread:
        raise UnreadableRevision(f"At {head} a request is none any more: {new.sums.complaints[-1]}")
    changes = _Changes(bench, *requests)
    worse = worse_lines(old.lines, new.lines, changes.of, _WORST)
    return Gate(
        old,
        new,
        limits,
        tuple(replace(one, place=_changed_line(repository, base, head, one.place)) for one in worse),
        grown_causes(old, new, _WORST),
        tuple(path for path in listed[0] if path not in both),
        tuple(path for path in listed[1] if path not in both),
        (*notes, *_notes(old, new)),
    )


class _Changes:
    """The first difference between the two versions of a request."""

    def __init__(
        self, bench: Bench, before: Mapping[str, list[Recorded]], after: Mapping[str, list[Recorded]]
    ) -> None:
        self._renderer = bench.renderer()
        self._before = dict(keyed(_flat(before), _owner))
        self._after = dict(keyed(_flat(after), _owner))

    def of(self, key: str) -> Difference | None:
        """None if it did not change."""
        old, new = (self._renderer.render(timeless(side[key])).prompt for side in (self._before, self._after))
        at = common_length(old.text, new.text)
        return first_difference(old.text, new.text, block_at(new, at), CONTEXT)


def _base(repository: Repository, wanted: Wanted, head: Revision, notes: list[str]) -> Revision:
    base = repository.revision(wanted.base)
    fork = repository.fork(base, head)
    if fork is None:
        notes.append(_SHALLOW.format(head=head, base=base))
        return base
    return fork


def _requests(
    repository: Repository, revision: Revision, paths: Sequence[str], wanted: Wanted
) -> dict[str, list[Recorded]]:
    sources = Sources(lambda path: repository.content(revision, path), wanted.contexts, wanted.request_model)
    try:
        return {path: sources.requests(path) for path in paths}
    except HotprefixError as error:
        raise UnreadableRevision(f"At {revision}: {error}") from error


def _changed_line(repository: Repository, base: Revision, head: Revision, place: Place) -> Place:
    """The first line of a file that changed, where a request has more than one line or is rendered."""
    if holds_lines(place.file):
        return place
    before, after = (
        (repository.content(revision, place.file) or b"").splitlines() for revision in (base, head)
    )
    pairs = enumerate(zip(before, after, strict=False), start=1)
    line = next((number for number, (old, new) in pairs if old != new), min(len(before), len(after)) + 1)
    return place if before == after else replace(place, line=min(line, max(1, len(after))))


def _flat(files: Mapping[str, list[Recorded]]) -> Iterator[Recorded]:
    for requests in files.values():
        yield from requests


def _owner(recorded: Recorded) -> str:
    return recorded.session or recorded.place.file


def _session(recorded: Recorded) -> str:
    return recorded.session


def _notes(old: Side, new: Side) -> tuple[str, ...]:
    told = [*old.sums.notes, *new.sums.notes]
    for side in (old, new):
        if side.sums.unread:
            told.append(f"{side.name}: {side.sums.unread} requests can't be read: {side.sums.complaints[0]}")
    return tuple(dict.fromkeys(told))
