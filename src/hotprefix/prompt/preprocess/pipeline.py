"""Steps one after the other, and the record of what they changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.prompt.preprocess.draft import Draft
from hotprefix.prompt.preprocess.edit import Change, Edit, reverted
from hotprefix.prompt.preprocess.step import Step


@dataclass(frozen=True, slots=True)
class Report:
    """Which steps ran, in order, and every edit they made."""

    steps: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = ()

    def of(self, step: str) -> list[Edit]:
        """What one step changed."""
        return [edit for edit in self.edits if edit.step == step]

    def summary(self) -> str:
        """Per step: how many edits and where the first is, in one line of ASCII."""
        return ", ".join(map(self._one, self.steps))

    def original(self, path: str, text: str) -> str:
        """The text of a content block as the client sent it, from the text that came of it."""
        for step in reversed(self.steps):
            changes = [
                Change(edit.start, edit.removed, edit.inserted) for edit in self.of(step) if edit.path == path
            ]
            text = reverted(text, changes)
        return text

    def _one(self, step: str) -> str:
        edits = self.of(step)
        if not edits:
            return f"{step};n=0"
        place = edits[0].path.encode("unicode_escape").decode("ascii")
        return f'{step};n={len(edits)};first="{place}+{edits[0].start}"'


class Pipeline:
    """Runs its steps in order. Where nothing is changed, a draft stays the same object."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)

    def run(self, draft: Draft) -> tuple[Draft, Report]:
        """The draft after all steps, and what they did."""
        edits: list[Edit] = []
        for step in self._steps:
            draft, made = step.apply(draft)
            edits += made
        return draft, Report(tuple(step.name for step in self._steps), tuple(edits))
