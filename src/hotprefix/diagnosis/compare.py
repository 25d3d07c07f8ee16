"""Two prompts: what they share, and what a change between them cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.diagnosis.alignment import Parting, Remains, parting, remains, shared_tokens
from hotprefix.diagnosis.classify import Case, Verdict, classify
from hotprefix.diagnosis.reason import Divergence, Reason
from hotprefix.diagnosis.snapshot import PromptSnapshot, SnapshotBlock
from hotprefix.diagnosis.surroundings import context_start, rendered
from hotprefix.diagnosis.text import EXCERPT, common_length, excerpt


@dataclass(frozen=True, slots=True)
class Scope:
    """Which part of the prompts counts: all, or (`is_marked`) up to the last marker of each, where
    entries of at least `minimum` tokens end. A change that costs fewer than `least` tokens is none."""

    is_marked: bool = False
    minimum: int = 0
    least: int = 32


@dataclass(frozen=True, slots=True)
class Change:
    """A change that cost something: why, where, and the name of the tool or parameter concerned."""

    reason: Reason
    detail: str
    subject: str
    divergence: Divergence


@dataclass(frozen=True, slots=True)
class Comparison:
    """In tokens of the new prompt: `shared` with the old one from the start; `usable` of those, by
    the mode's rules; `ideal` had the change not been made. `hidden` names a parameter that changed
    without a trace in the prompt."""

    shared: int
    usable: int
    ideal: int
    change: Change | None = None
    hidden: str = ""


def compare(old: PromptSnapshot, new: PromptSnapshot, scope: Scope) -> Comparison:
    """Compare a prompt with an earlier one."""
    if old.model != new.model:
        return _other_model(old, new, scope)
    shared = shared_tokens(old.blocks, new.blocks)
    olds, news = _region(old, scope), _region(new, scope)
    if not olds or not news:
        return Comparison(shared, 0, 0)
    at = parting(olds, news)
    usable = _usable(old, new, shared, scope)
    if at is None:
        return Comparison(shared, usable, usable, hidden=changed_parameter(old, new))
    found = _change(Case(old, new, olds[at.old_block], news[at.block], at), olds, news, scope)
    if found is None:
        return Comparison(shared, usable, usable)
    change, ideal = found
    return Comparison(shared, usable, max(usable, ideal), change)


def changed_parameter(old: PromptSnapshot, new: PromptSnapshot) -> str:
    """The first parameter, by name, whose value is another one; empty if none is."""
    names = sorted({*old.parameters, *new.parameters} - {"model"})
    return next((name for name in names if old.parameters.get(name) != new.parameters.get(name)), "")


def _change(
    case: Case, olds: Sequence[SnapshotBlock], news: Sequence[SnapshotBlock], scope: Scope
) -> tuple[Change, int] | None:
    rest = remains(olds, news, case.at)
    if not rest.steps:
        return None
    verdict = classify(case, olds, news, rest, changed_parameter(case.old, case.new))
    kept = rest.tokens
    if verdict.says_the_same:
        kept += news[case.at.block].body.tokens - rest.first
    kept = min(kept, sum(block.body.tokens for block in news) - case.at.tokens)
    if kept < scope.least or not _is_credible(verdict, rest, case):
        return None
    divergence = _divergence(verdict.path, case.at, olds, news)
    return Change(verdict.reason, verdict.detail, verdict.subject, divergence), case.at.tokens + kept


def _is_credible(verdict: Verdict, rest: Remains, case: Case) -> bool:
    """Whether this is one prompt that was changed, rather than two that have something in common."""
    if verdict.says_the_same:
        return True
    if verdict.reason in (Reason.BLOCK_VANISHED, Reason.BLOCK_INSERTED, Reason.HEAD_TRIMMED):
        step = rest.steps[0]
        moved = max(step.old_to - step.old_from, step.new_to - step.new_from)
        return rest.equal >= min(2, moved)
    found = rest.equal + rest.similar
    is_mostly_kept = found >= max(1, rest.added) and (found >= rest.dropped or rest.equal >= 2)
    return is_mostly_kept or (rest.is_first_alike and verdict.reason is not Reason.HISTORY_EDITED)


def _divergence(
    path: str, at: Parting, olds: Sequence[SnapshotBlock], news: Sequence[SnapshotBlock]
) -> Divergence:
    start = context_start(news, at.same, EXCERPT)
    before = rendered(olds[start:], at.old_block - start, EXCERPT)
    after = rendered(news[start:], at.block - start, EXCERPT)
    char = common_length(before, after)
    if before == after:
        return Divergence(path, at.block, at.tokens, "", "")
    return Divergence(path, at.block, at.tokens, excerpt(before, char), excerpt(after, char))


def _region(snapshot: PromptSnapshot, scope: Scope) -> tuple[SnapshotBlock, ...]:
    """The blocks that can be in the cache."""
    if not scope.is_marked:
        return snapshot.blocks
    return snapshot.blocks[: snapshot.markers[-1] + 1] if snapshot.markers else ()


def _usable(old: PromptSnapshot, new: PromptSnapshot, shared: int, scope: Scope) -> int:
    if not scope.is_marked:
        return shared
    most = min(shared, new.blocks[new.markers[-1]].end_token)
    ends = (old.blocks[marker].end_token for marker in old.markers)
    return max((end for end in ends if scope.minimum <= end <= most), default=0)


def _other_model(old: PromptSnapshot, new: PromptSnapshot, scope: Scope) -> Comparison:
    """Another model has other tokens: what counts is the text that was sent."""
    ideal = 0
    for before, after in zip(_region(old, scope), _region(new, scope), strict=False):
        if (before.role, before.body.text_digest) != (after.role, after.body.text_digest):
            break
        ideal = after.end_token
    if ideal < scope.least:
        return Comparison(0, 0, 0)
    divergence = Divergence("model", 0, 0, excerpt(old.model, 0), excerpt(new.model, 0))
    return Comparison(0, 0, ideal, Change(Reason.MODEL_CHANGED, "", new.model, divergence))
