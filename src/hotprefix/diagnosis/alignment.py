"""Which tokens two prompts share, at the front and behind their first difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from hotprefix.diagnosis.snapshot import ANSWER, SnapshotBlock

_ID_BYTES = 4
_RUN = 16
_MOST_TRIES = 512
_MOST_RUNS = 32
_MOST_BLOCKS = 400
_MOST_PAIRS = 16


@dataclass(frozen=True, slots=True)
class Parting:
    """Two prompts agree in `tokens` tokens and differ for the first time within block `block` of the
    new one, `old_block` of the old one. Their first `same` blocks are equal in every respect."""

    tokens: int
    same: int
    old_block: int
    block: int


def parting(old: Sequence[SnapshotBlock], new: Sequence[SnapshotBlock]) -> Parting | None:
    """Where two prompts part; None if one is the beginning of the other (or they are equal).

    Tokens decide: blocks that are cut elsewhere, with the same tokens, do not differ.
    """
    same = 0
    while same < min(len(old), len(new)) and old[same].body.digest == new[same].body.digest:
        same += 1
    before = sum(block.body.tokens for block in new[:same])
    old_rest = b"".join(block.body.ids for block in old[same:])
    new_rest = b"".join(block.body.ids for block in new[same:])
    common = common_ids(old_rest, new_rest)
    if common * _ID_BYTES == min(len(old_rest), len(new_rest)):
        return None
    tokens = before + common
    old_block, block = _block_at(old, tokens), _block_at(new, tokens)
    first = min(old_block, block)
    # Where one text is longer at its end, the other prompt is already in its next block.
    if _start(old, first) == _start(new, first):
        old_block = block = first
    return Parting(tokens, same, old_block, block)


def shared_tokens(old: Sequence[SnapshotBlock], new: Sequence[SnapshotBlock]) -> int:
    """The longest common prefix of two prompts, in tokens."""
    parted = parting(old, new)
    if parted is not None:
        return parted.tokens
    return min(sum(block.body.tokens for block in old), sum(block.body.tokens for block in new))


def common_ids(left: bytes, right: bytes) -> int:
    """How many leading 32-bit ids are equal."""
    count = min(len(left), len(right)) // _ID_BYTES
    one = np.frombuffer(left, dtype=np.int32, count=count)
    other = np.frombuffer(right, dtype=np.int32, count=count)
    different = np.flatnonzero(one != other)
    return int(different[0]) if len(different) else count


def kept_within(old: bytes, new: bytes) -> int:
    """About how many of `new`'s ids reappear in `old` in the same order, in runs of at least 16.

    Both start at a difference. The effort is bounded: very different ids count as all changed.
    """
    kept = old_at = new_at = tries = runs = 0
    while tries < _MOST_TRIES and runs < _MOST_RUNS:
        window = new[new_at : new_at + _RUN * _ID_BYTES]
        if len(window) < _RUN * _ID_BYTES:
            return kept
        found = _find_ids(old, window, old_at)
        if found < 0:
            new_at += _ID_BYTES
            tries += 1
            continue
        length = common_ids(old[found:], new[new_at:])
        kept += length
        old_at, new_at = found + length * _ID_BYTES, new_at + length * _ID_BYTES
        runs += 1
    return kept


@dataclass(frozen=True, slots=True)
class Step:
    """One step from the old blocks to the new ones: `kind` as in difflib, ranges of indices."""

    kind: str
    old_from: int
    old_to: int
    new_from: int
    new_to: int


@dataclass(frozen=True, slots=True)
class Remains:
    """What both prompts still share behind a difference.

    `tokens` of the new one. Of those `first` are in the first pair of blocks, with what that has in
    common before the difference; it `is_first_alike` if they are most of the block. Of the
    other blocks `equal` are the same, `similar` mostly; of the rest `dropped` were in the old prompt and
    `added` are in the new one. `steps` lead from the old blocks to the new, with indices that
    count from the differing blocks on.
    """

    tokens: int
    equal: int
    similar: int
    dropped: int
    added: int
    steps: tuple[Step, ...]
    first: int
    is_first_alike: bool


def remains(old: Sequence[SnapshotBlock], new: Sequence[SnapshotBlock], at: Parting) -> Remains:
    """Compare what lies behind the first difference, block by block and within blocks."""
    olds, news = _contents(old[at.old_block :]), _contents(new[at.block :])
    if not olds or not news:
        return Remains(0, 0, 0, 0, 0, (), 0, False)
    codes = SequenceMatcher(None, _keys(olds), _keys(news), autojunk=False).get_opcodes()
    steps = tuple(Step(kind, *span) for kind, *span in codes)
    # What lies before the difference within these blocks is part of the common prefix.
    before = at.tokens - _start(old, at.old_block), at.tokens - _start(new, at.block)
    tokens = equal = similar = dropped = added = first = 0
    for step in steps:
        pairs = zip(olds[step.old_from : step.old_to], news[step.new_from : step.new_to], strict=False)
        kept = [_kept(*pair) for pair in list(pairs)[: _MOST_PAIRS if step.kind == "replace" else None]]
        if kept and step.new_from == 0:
            skip_old = before[0] if step.old_from == 0 else 0
            kept[0] = _kept(olds[step.old_from], news[0], skip_old, before[1])
            first = kept[0] + before[1] if step.old_from == 0 else 0
        tokens += sum(kept)
        if step.kind == "equal":
            equal += len(kept)
            continue
        alike = sum(_is_most(k, block) for k, block in zip(kept, news[step.new_from :], strict=False))
        similar += alike
        dropped += step.old_to - step.old_from - alike
        added += step.new_to - step.new_from - alike
    return Remains(tokens, equal, similar, dropped, added, steps, first, _is_most(first, news[0]))


def _kept(old: SnapshotBlock, new: SnapshotBlock, skip_old: int = 0, skip_new: int = 0) -> int:
    """Tokens of `new` that `old` has in the same order, both without some tokens at their starts."""
    if old.role != new.role:
        return 0
    olds, news = old.body.ids[skip_old * _ID_BYTES :], new.body.ids[skip_new * _ID_BYTES :]
    same = common_ids(olds, news)
    return same + kept_within(olds[same * _ID_BYTES :], news[same * _ID_BYTES :])


def _is_most(kept: int, block: SnapshotBlock) -> bool:
    return kept * 4 >= block.body.tokens * 3 > 0


def _contents(blocks: Sequence[SnapshotBlock]) -> Sequence[SnapshotBlock]:
    """The blocks without the opening of an answer that is not known, which is no content."""
    is_open = bool(blocks) and blocks[-1].path == ANSWER and not blocks[-1].body.length
    return blocks[: -1 if is_open else None][:_MOST_BLOCKS]


def _keys(blocks: Sequence[SnapshotBlock]) -> list[tuple[str, bytes]]:
    return [(block.role, block.body.text_digest) for block in blocks]


def _find_ids(ids: bytes, window: bytes, start: int) -> int:
    found = ids.find(window, start)
    while found >= 0 and found % _ID_BYTES:
        found = ids.find(window, found + 1)
    return found


def _start(blocks: Sequence[SnapshotBlock], index: int) -> int:
    return sum(block.body.tokens for block in blocks[:index])


def _block_at(blocks: Sequence[SnapshotBlock], tokens: int) -> int:
    done = 0
    for index, block in enumerate(blocks):
        done += block.body.tokens
        if tokens < done:
            return index
    return len(blocks) - 1
