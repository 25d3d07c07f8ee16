"""Changes of a file's text, by position."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """Characters `start` to `end` become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """Edits that belong together: all of them are made, or none."""

    edits: tuple[Edit, ...]


def apply_fixes(text: str, fixes: Iterable[Fix]) -> tuple[str, int]:
    """The text with as many fixes as do not touch one another, and how many that were."""
    taken: list[Edit] = []
    count = 0
    for fix in fixes:
        edits = [edit for edit in fix.edits if edit not in taken]  # the same change may be asked for twice
        if not any(_touch(edit, other) for edit in edits for other in taken):
            taken.extend(edits)
            count += 1
    for edit in sorted(taken, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text, count


def _touch(one: Edit, other: Edit) -> bool:
    if one.start == one.end and other.start == other.end:
        return one.start == other.start
    return one.start < other.end and other.start < one.end
