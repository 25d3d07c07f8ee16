"""What every step of pre-processing can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from hotprefix.prompt.preprocess.draft import Draft
from hotprefix.prompt.preprocess.edit import Change, Edit, applied

_OWN_WORDS = "assistant"
"""What the model said is cached under the tokens that it drew; a changed text would lose them."""


class Step(Protocol):
    """Pure: equal drafts give equal results, and what is changed once is not changed again."""

    @property
    def name(self) -> str:
        """How the step is asked for and reported."""
        ...

    def apply(self, draft: Draft) -> tuple[Draft, Sequence[Edit]]:
        """The draft after this step, which is `draft` itself if nothing changed, and what changed."""
        ...


class TextStep:
    """Changes the text of content blocks, each for itself, except what the assistant said."""

    def __init__(self, name: str, find: Callable[[str], Sequence[Change]]) -> None:
        self._name = name
        self._find = find

    @property
    def name(self) -> str:
        return self._name

    def apply(self, draft: Draft) -> tuple[Draft, Sequence[Edit]]:
        texts: dict[str, str] = {}
        edits: list[Edit] = []
        for group in draft.blocks:
            for block in group:
                changes = () if block.role == _OWN_WORDS else self._find(block.text)
                if changes:
                    texts[block.path] = applied(block.text, changes)
                    edits += as_edits(self._name, block.path, changes)
        return (draft.with_texts(texts), edits) if edits else (draft, ())


def as_edits(step: str, path: str, changes: Sequence[Change]) -> list[Edit]:
    """Changes with the names of who made them and where."""
    return [Edit(step, path, change.start, change.removed, change.inserted) for change in changes]
