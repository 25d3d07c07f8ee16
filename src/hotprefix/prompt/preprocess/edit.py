"""One change that a step made, as it can be shown and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Change:
    """In a text, at character `start`: `removed` stood there, now `inserted` does."""

    start: int
    removed: str
    inserted: str


@dataclass(frozen=True, slots=True)
class Edit:
    """A change by `step` at JSON path `path`; `start` counts characters of the value as that step got it."""

    step: str
    path: str
    start: int
    removed: str
    inserted: str


def applied(text: str, changes: Sequence[Change]) -> str:
    """`text` with `changes` made; they are in order and don't overlap."""
    parts = []
    at = 0
    for change in changes:
        parts += [text[at : change.start], change.inserted]
        at = change.start + len(change.removed)
    return "".join([*parts, text[at:]])


def reverted(text: str, changes: Sequence[Change]) -> str:
    """The text that became `text` by `changes`."""
    shift = 0
    back = []
    for change in changes:
        back.append(Change(change.start + shift, change.inserted, change.removed))
        shift += len(change.inserted) - len(change.removed)
    return applied(text, back)


def narrowed(start: int, removed: str, inserted: str) -> Change:
    """The change without what both texts begin and end with."""
    most = min(len(removed), len(inserted))
    head = next((i for i in range(most) if removed[i] != inserted[i]), most)
    most -= head
    tail = next((i for i in range(most) if removed[-1 - i] != inserted[-1 - i]), most)
    return Change(start + head, removed[head : len(removed) - tail], inserted[head : len(inserted) - tail])
