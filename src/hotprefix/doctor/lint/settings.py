"""What a lint run is asked to do, on the command line or in `[tool.hotprefix.lint]` of pyproject.toml."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from enum import StrEnum
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from hotprefix.base.errors import HotprefixError
from hotprefix.doctor.lint.rule import Language, Rule, rule_called, rules
from hotprefix.doctor.lint.severity import Severity

ARTICLES = "dashscope-articles"
"""The lint profile that is the checklist of the DashScope articles."""

ARTICLES_RULES = "dashscope-2026-03"
"""The vendor profile with the minimums that the articles name."""

AUTO = "auto"
_TABLE = "[tool.hotprefix.lint]"


class BadLintSettings(HotprefixError):
    """An option or a key of `[tool.hotprefix.lint]` has no meaning; the message names it."""


class FailOn(StrEnum):
    """From which severity on a run fails."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"

    @property
    def severity(self) -> Severity | None:
        """None: it never does."""
        return None if self is FailOn.NEVER else Severity(self.value)


def _dashed(name: str) -> str:
    return name.replace("_", "-")


class LintSettings(BaseModel):
    """`select` and `ignore` hold ids, names, or beginnings of ids (`HP1`); an empty `select` means all rules.

    `profile` is `auto`, `dashscope-articles` or a vendor profile's name. `per_file_ignores` maps
    patterns of paths to rules.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=_dashed, populate_by_name=True)

    profile: str = AUTO
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    per_file_ignores: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    explicit_models: tuple[str, ...] = ()
    fail_on: FailOn = FailOn.WARNING
    lang: Language = Language.ENGLISH
    model: str | None = None
    tokenizer: Path | None = None
    template: Path | None = None

    @field_validator("select", "ignore")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not matching(name):
                raise ValueError(f"{name!r} is no rule; hotprefix lint --rules lists them")
        return names

    @property
    def is_checklist(self) -> bool:
        """Whether the articles' checklist is asked for."""
        return self.profile == ARTICLES

    def runs(self, rule: Rule) -> bool:
        """Whether a rule's findings are wanted."""
        if any(rule.id in matching(name) for name in self.ignore):
            return False
        if self.select:
            return any(rule.id in matching(name) for name in self.select)
        return not rule.only or self.profile in rule.only

    def ignored_in(self, file: str) -> frozenset[str]:
        """Ids of the rules that are not wanted in a file."""
        return frozenset(
            rule
            for pattern, names in self.per_file_ignores.items()
            if is_like(file, pattern)
            for name in names
            for rule in matching(name)
        )

    def excludes(self, file: str) -> bool:
        """Whether a file is left out."""
        return any(is_like(file, pattern) for pattern in self.exclude)


def matching(name: str) -> frozenset[str]:
    """Ids of the rules that a name, an id or the beginning of one stands for."""
    found = rule_called(name)
    if found is not None:
        return frozenset((found.id,))
    upper = name.strip().upper()
    return frozenset(rule for rule in rules() if upper.startswith("HP") and rule.startswith(upper))


def is_like(file: str, pattern: str) -> bool:
    """Whether a path, or the end of it, matches a pattern; a folder's name covers what is in it."""
    path = Path(file).as_posix()
    return any(fnmatch(path, form) for form in (pattern, f"*/{pattern}", f"{pattern}/*", f"*/{pattern}/*"))


def read_settings(folder: Path) -> Mapping[str, Any]:
    """The table of the nearest pyproject.toml at or above a folder; empty without one."""
    for place in (folder, *folder.parents):
        file = place / "pyproject.toml"
        if file.is_file():
            return settings_in(file)
    return {}


def settings_in(file: Path) -> Mapping[str, Any]:
    """The table in one file. Raises `BadLintSettings`."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadLintSettings(f"{file} is no TOML: {error}") from error
    table = content.get("tool", {}).get("hotprefix", {}).get("lint", {})
    if not isinstance(table, dict):
        raise BadLintSettings(f"{file}: {_TABLE} is no table.")
    return table


def make_settings(table: Mapping[str, Any], options: Mapping[str, Any]) -> LintSettings:
    """Settings of a file, overridden by `options` that are not None. Raises `BadLintSettings`."""
    given = {_dashed(name): value for name, value in options.items() if value is not None}
    try:
        return LintSettings.model_validate({**table, **given})
    except ValidationError as error:
        raise BadLintSettings("\n".join(map(_told, error.errors()))) from error


def _told(problem: Any) -> str:
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        allowed = ", ".join(sorted(_dashed(field) for field in LintSettings.model_fields))
        return f"{name} is no key of {_TABLE}. Allowed: {allowed}."
    return f"{name}: {problem['msg'].removeprefix('Value error, ')}."


def named(names: Sequence[str] | None) -> tuple[str, ...] | None:
    """Options that may be given several times or as one list with commas."""
    if not names:
        return None
    return tuple(part.strip() for name in names for part in name.split(",") if part.strip())
