"""The rules: data in `rules.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources
from typing import Any

from hotprefix.doctor.lint.phrase import Phrase
from hotprefix.doctor.lint.severity import Severity

Words = Mapping[str, str | int | Phrase]


class Language(StrEnum):
    """Of messages and advice."""

    ENGLISH = "en"
    CHINESE = "zh"


class Question(StrEnum):
    """The seven questions of the DashScope articles' checklist."""

    FIXED = "fixed"
    LONG = "long"
    SESSION = "session"
    DECODE = "decode"
    MODEL = "model"
    FORMAT = "format"
    API = "api"


@dataclass(frozen=True, slots=True)
class Rule:
    """`id` is stable, `name` is for people. `says` and `fix` are templates in each language.

    `step` is one of the articles' six, 0 for none; `only` the lint profiles that it is for, empty: all.
    """

    id: str
    name: str
    severity: Severity
    question: Question
    step: int
    says: Mapping[str, str]
    fix: Mapping[str, str]
    only: tuple[str, ...] = ()

    def message(self, words: Words, language: Language) -> str:
        """What is wrong; a word that is missing shows as a question mark."""
        return self.says[language].format_map(_Shown(words, language)).strip()

    def advice(self, words: Words, language: Language) -> str:
        """What to do."""
        return self.fix[language].format_map(_Shown(words, language)).strip()


class _Shown(dict[str, str]):
    def __init__(self, words: Words, language: Language) -> None:
        super().__init__({name: _shown(word, language) for name, word in words.items()})

    def __missing__(self, name: str) -> str:
        return "?"


def _shown(word: str | int | Phrase, language: Language) -> str:
    if isinstance(word, Phrase):
        return word.zh if language is Language.CHINESE else word.en
    return f"{word:,}" if isinstance(word, int) else word


@cache
def rules() -> Mapping[str, Rule]:
    """All rules by id, in the order of the file."""
    text = (resources.files("hotprefix.doctor.lint") / "rules.toml").read_text(encoding="utf-8")
    return {entry["id"]: _rule(entry) for entry in tomllib.loads(text)["rule"]}


def rule_called(name: str) -> Rule | None:
    """By id or name, in any case."""
    wanted = name.strip().lower()
    return next((rule for rule in rules().values() if wanted in (rule.id.lower(), rule.name)), None)


def _rule(entry: dict[str, Any]) -> Rule:
    return Rule(
        id=entry["id"],
        name=entry["name"],
        severity=Severity(entry["severity"]),
        question=Question(entry["question"]),
        step=entry["step"],
        says=entry["says"],
        fix=entry["fix"],
        only=tuple(entry.get("only", ())),
    )
