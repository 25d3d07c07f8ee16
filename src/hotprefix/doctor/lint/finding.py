"""Something that a rule found."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotprefix.doctor.lint.edits import Fix
from hotprefix.doctor.lint.rule import Language, Rule, Words
from hotprefix.doctor.lint.severity import Severity
from hotprefix.doctor.place import Place


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The text concerned: `text` from one line, of which `start` to `end` is what offends."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LintFinding:
    """`words` fill the rule's templates. `is_observed`: seen to change, not only shaped as if it might.

    `key` names what is meant, so that the same thing found twice is told once; `times` counts it.
    """

    rule: Rule
    place: Place
    words: Words = field(default_factory=dict)
    severity: Severity = Severity.WARNING
    excerpt: Excerpt | None = None
    fix: Fix | None = None
    is_observed: bool = False
    key: str = ""
    times: int = 1

    def message(self, language: Language) -> str:
        """What is wrong."""
        return self.rule.message(self.words, language)

    def advice(self, language: Language) -> str:
        """What to do."""
        return self.rule.advice(self.words, language)
