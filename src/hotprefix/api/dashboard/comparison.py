"""Two prompts side by side: which blocks they share, and the first character that differs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any

from hotprefix.api.dashboard.recent import Pair
from hotprefix.diagnosis.alignment import Parting, parting
from hotprefix.diagnosis.snapshot import ANSWER, SnapshotBlock
from hotprefix.diagnosis.surroundings import context_start, rendered
from hotprefix.diagnosis.text import common_length

CONTEXT = 300
"""Characters that are shown on each side of the difference."""
_MOST_BLOCKS = 400
_CONTROLS = {"\n": "LINE FEED", "\r": "CARRIAGE RETURN", "\t": "TAB", "\0": "NULL"}
_WORD = re.compile(r"[A-Za-z0-9_]+|\s+|.", re.DOTALL)


class BlockState(StrEnum):
    """What became of a content block: SHARED lies before the first difference; DIFFERS holds it; of what
    lies behind, SAME has the same words, which count for nothing any more, CHANGED has others, GONE and
    NEW are in one of the prompts only."""

    SHARED = "shared"
    DIFFERS = "differs"
    SAME = "same"
    CHANGED = "changed"
    GONE = "gone"
    NEW = "new"


def comparison(pair: Pair, *, words: bool) -> dict[str, Any]:
    """The blocks of both and their first difference, if they have one; without `words`, figures alone."""
    old, new = _content(pair.old.blocks), _content(pair.new.blocks)
    at = parting(old, new)
    facts: dict[str, Any] = {
        "seconds": pair.new.at - pair.old.at,
        "old_tokens": pair.old.tokens,
        "new_tokens": pair.new.tokens,
        "old_model": pair.old.model,
        "old_scene": pair.old.scene,
        "shared_tokens": at.tokens if at is not None else min(_tokens(old), _tokens(new)),
        "blocks": list(_rows(old, new, at))[:_MOST_BLOCKS],
        "difference": None,
    }
    if at is not None:
        facts["difference"] = {"path": new[at.block].path, "block": at.block, "token": at.tokens}
        if words:
            facts["difference"] |= _words(old, new, at)
    return facts


def _content(blocks: Sequence[SnapshotBlock]) -> Sequence[SnapshotBlock]:
    """Without the opening of an answer that is not known."""
    is_open = len(blocks) > 1 and blocks[-1].path == ANSWER and not blocks[-1].body.length
    return blocks[:-1] if is_open else blocks


def _tokens(blocks: Sequence[SnapshotBlock]) -> int:
    return sum(block.body.tokens for block in blocks)


def _rows(
    old: Sequence[SnapshotBlock], new: Sequence[SnapshotBlock], at: Parting | None
) -> Iterator[dict[str, Any]]:
    same = min(len(old), len(new)) if at is None else min(at.old_block, at.block)
    for index in range(same):
        yield _row(BlockState.SHARED, old[index], new[index])
    olds, news = old[same:][:_MOST_BLOCKS], new[same:][:_MOST_BLOCKS]
    is_first = at is not None
    for left, right in _aligned(olds, news):
        if left is None or right is None:
            yield _row(BlockState.NEW if left is None else BlockState.GONE, left, right)
        elif is_first:
            yield _row(BlockState.DIFFERS, left, right)
        else:
            is_same = left.body.text_digest == right.body.text_digest
            yield _row(BlockState.SAME if is_same else BlockState.CHANGED, left, right)
        is_first = False


def _aligned(
    old: Sequence[SnapshotBlock], new: Sequence[SnapshotBlock]
) -> Iterator[tuple[SnapshotBlock | None, SnapshotBlock | None]]:
    for _, a, b, c, d in SequenceMatcher(None, _keys(old), _keys(new), autojunk=False).get_opcodes():
        for number in range(max(b - a, d - c)):
            left = old[a + number] if a + number < b else None
            right = new[c + number] if c + number < d else None
            yield left, right


def _keys(blocks: Sequence[SnapshotBlock]) -> list[tuple[str, bytes]]:
    return [(block.role, block.body.text_digest) for block in blocks]


def _row(state: BlockState, old: SnapshotBlock | None, new: SnapshotBlock | None) -> dict[str, Any]:
    return {"state": state.value, "old": _block(old), "new": _block(new)}


def _block(block: SnapshotBlock | None) -> dict[str, Any] | None:
    if block is None:
        return None
    return {"path": block.path, "role": block.role, "tokens": block.body.tokens}


def _words(old: Sequence[SnapshotBlock], new: Sequence[SnapshotBlock], at: Parting) -> dict[str, Any]:
    first = min(at.old_block, at.block)
    start = context_start(new, first, CONTEXT)
    before, after = (
        rendered(old[start:], at.old_block - start, CONTEXT),
        rendered(new[start:], at.block - start, CONTEXT),
    )
    char = common_length(before, after)
    if before == after:
        return {}  # other tokens for the same text, or a difference behind what is kept of it
    lead = before[max(0, char - CONTEXT) : char]
    return {
        "char": _offset(new[start : at.block + 1], char),
        "is_cut": char > CONTEXT or start > 0,
        "lead": lead,
        "pieces": _pieces(before[char : char + CONTEXT], after[char : char + CONTEXT]),
        "old_char": _character(before[char : char + 1]),
        "new_char": _character(after[char : char + 1]),
    }


def _offset(blocks: Sequence[SnapshotBlock], char: int) -> int | None:
    """The place of a character in the text that was sent for the last block; None if it isn't in there."""
    last = blocks[-1].body
    inside = char - sum(len(block.body.rendered) for block in blocks[:-1]) - len(last.lead)
    return inside if inside >= 0 and not last.is_altered else None


def _pieces(old: str, new: str) -> list[list[str]]:
    """Runs of text that are in both (`same`), in the earlier prompt (`old`) or in this one (`new`)."""
    pieces: list[list[str]] = []
    left, right = _WORD.findall(old), _WORD.findall(new)
    for kind, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if kind == "equal":
            pieces.append(["same", "".join(left[a:b])])
            continue
        changed = ("old", "".join(left[a:b])), ("new", "".join(right[c:d]))
        pieces += [[name, text] for name, text in changed if text]
    # Texts of other lengths are cut at other places: what differs there says nothing.
    if CONTEXT in (len(old), len(new)):
        last = max((at for at, (kind, _) in enumerate(pieces) if kind == "same"), default=len(pieces))
        pieces = pieces[: last + 1]
    return pieces


def _character(char: str) -> dict[str, str] | None:
    """What it is called, for some can't be seen; None at the end of a text."""
    if not char:
        return None
    name = unicodedata.name(char, "") or _CONTROLS.get(char, "")
    return {"char": char, "code": f"U+{ord(char):04X}", "name": name}
