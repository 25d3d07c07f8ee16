"""Whose caching rules hold for a request."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from typing import Any

from hotprefix.doctor.dialect import Dialect
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.pattern import best_pattern
from hotprefix.profiles.profile import Profile

_OWN = "hotprefix"
_BEDROCK = "anthropic."
_TOOLS_FIRST = ("openai", "anthropic")
_VENDOR_OF_DIALECT = {Dialect.DASHSCOPE: "dashscope", Dialect.ANTHROPIC: "anthropic"}


@dataclass(frozen=True, slots=True)
class ModelList:
    """Patterns of models with an explicit cache, and where the list is from. `patterns` is empty: all."""

    patterns: tuple[str, ...]
    listed: str

    def has(self, model: str) -> bool:
        """Whether a model is on it."""
        return not self.patterns or best_pattern(self.patterns, _bare(model)) is not None


class Vendors:
    """Chooses a profile for each request: `forced`, or the newest of the vendor that its model belongs to."""

    def __init__(
        self, book: ProfileBook, forced: Profile | None = None, explicit_models: Sequence[str] = ()
    ) -> None:
        self._book = book
        self._forced = forced
        self._more = tuple(explicit_models)

    def profile(self, dialect: Dialect, model: str) -> Profile:
        """The rules that hold. A model of no known family is one that is served by oneself."""
        if self._forced is not None:
            return self._forced
        vendor = family_of(model) if model else None
        vendor = vendor or _VENDOR_OF_DIALECT.get(dialect) or _OWN
        found = [profile for profile in self._book.profiles.values() if profile.vendor == vendor]
        return max(found, key=lambda profile: profile.dated) if found else self._book.default

    def explicit_models(self, profile: Profile, model: str) -> ModelList:
        """The models with an explicit cache, as far as they are known for this one."""
        if profile.explicit_models:
            return ModelList((*profile.explicit_models, *self._more), profile.name)
        known: Sequence[str] = _data()["explicit"].get(profile.vendor, ())
        if not known or family_of(model) != profile.vendor:
            return ModelList((), "")
        dated: date = _data()["dated"]
        return ModelList((*known, *self._more), f"{profile.vendor}, {dated.isoformat()}")


def reads_tools_first(profile: Profile) -> bool:
    """Whether the vendor's models read tools before the system message. Qwen's templates put them behind."""
    return profile.vendor in _TOOLS_FIRST


def family_of(model: str) -> str | None:
    """The vendor whose rules hold for a model, by how its name begins; None for one that is not known."""
    families: Mapping[str, Sequence[str]] = _data()["families"]
    vendors = {pattern: vendor for vendor, patterns in families.items() for pattern in patterns}
    found = best_pattern(vendors, _bare(model))
    return vendors[found] if found is not None else None


def _bare(model: str) -> str:
    """Gateways write dashscope/qwen-plus, and Bedrock us.anthropic.claude-…"""
    name = model.rsplit("/", 1)[-1]
    return name.partition(_BEDROCK)[2] or name


@cache
def _data() -> dict[str, Any]:
    text = (resources.files("hotprefix.doctor.lint") / "vendors.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
