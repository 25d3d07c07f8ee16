"""The first place where two texts differ, ready to be shown: what is the same, what is gone, what is new."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum

from hotprefix.diagnosis.text import common_length

CONTEXT = 60
"""Characters shown on each side, unless told otherwise."""

_NAMED = {"\n": "↵", "\r": "␍", "\t": "→", "\u00a0": "⍽"}
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


class Part(StrEnum):
    """What a piece of text is: in both, in the earlier one only, or in the later one only."""

    SAME = "same"
    GONE = "gone"
    NEW = "new"


@dataclass(frozen=True, slots=True)
class Piece:
    """`text` has its invisible characters made visible."""

    part: Part
    text: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Two texts differ for the first time after `at` characters, at `path` of the later request.

    `before` and `after` show both around that place. `is_cut` tells that one text ends there: it is the
    beginning of the other.
    """

    at: int
    path: str
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]
    is_cut: bool = False


def first_difference(old: str, new: str, path: str = "", context: int = CONTEXT) -> Difference | None:
    """None if the texts are equal."""
    if old == new:
        return None
    at = common_length(old, new)
    start = max(0, at - context)
    lead = old[start:at]
    before, after = old[at : at + context], new[at : at + context]
    gone, new_pieces = [Piece(Part.SAME, visible(lead))], [Piece(Part.SAME, visible(lead))]
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for kind, old_from, old_to, new_from, new_to in _settled(matcher.get_opcodes()):
        is_same = kind == "equal"
        if old_to > old_from:
            text = visible(before[old_from:old_to], with_blanks=not is_same)
            gone.append(Piece(Part.SAME if is_same else Part.GONE, text))
        if new_to > new_from:
            text = visible(after[new_from:new_to], with_blanks=not is_same)
            new_pieces.append(Piece(Part.SAME if is_same else Part.NEW, text))
    return Difference(at, path, _filled(gone), _filled(new_pieces), at in (len(old), len(new)))


def redacted(difference: Difference) -> Difference:
    """Without the texts: how long they are stands in their place."""
    hide = [
        tuple(replace(piece, text=f"<{len(piece.text)} characters>") for piece in pieces)
        for pieces in (difference.before, difference.after)
    ]
    return replace(difference, before=hide[0], after=hide[1])


def visible(text: str, *, with_blanks: bool = False) -> str:
    """Line ends, tabs and all that has no shape of its own get one; `with_blanks`, blanks too."""
    return "".join(_shown(character, "·" if with_blanks else " ") for character in text)


def plain(pieces: Sequence[Piece]) -> str:
    """The pieces without their marks."""
    return "".join(piece.text for piece in pieces)


def _shown(character: str, blank: str) -> str:
    if character == " ":
        return blank
    if character in _NAMED:
        return _NAMED[character]
    category = unicodedata.category(character)
    if category in _HIDDEN or category == "Zs":
        return f"⟨U+{ord(character):04X}⟩"
    return character


def _settled(codes: Sequence[tuple[str, int, int, int, int]]) -> list[tuple[str, int, int, int, int]]:
    """Steps with islands of one or two equal characters between changes taken into the changes: they are
    equal by chance, and only make the change harder to read."""
    settled: list[tuple[str, int, int, int, int]] = []
    for number, (kind, old_from, old_to, new_from, new_to) in enumerate(codes):
        is_island = kind == "equal" and old_to - old_from <= 2 and 0 < number < len(codes) - 1
        if settled and (settled[-1][0] != "equal") and (kind != "equal" or is_island):
            settled[-1] = ("replace", settled[-1][1], old_to, settled[-1][3], new_to)
        else:
            settled.append(("replace" if is_island else kind, old_from, old_to, new_from, new_to))
    return settled


def _filled(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    return tuple(piece for piece in pieces if piece.text)
