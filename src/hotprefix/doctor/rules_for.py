"""Whose caching rules a recorded request is judged by."""

from __future__ import annotations

from fnmatch import fnmatchcase

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.recorded import Recorded
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.profile import Profile

_OPENAI_MODELS = ("gpt-*", "chatgpt-*", "o[1-9]*", "openai/*", "codex-*")
_ANTHROPIC_MODELS = ("claude*", "anthropic/*", "anthropic.*")


def rules_for(recorded: Recorded, book: ProfileBook, chosen: str | None = None) -> Profile:
    """The profile called `chosen`, else the newest one of the vendor that the request is for.

    Anthropic for its dialect and its models, OpenAI for its models; all else is DashScope's.
    Raises `UnknownProfile`.
    """
    if chosen is not None:
        return book.get(chosen)
    return newest_of(_vendor(recorded), book)


def newest_of(vendor: str, book: ProfileBook) -> Profile:
    """The vendor's profile with the latest date; the default one if it has none."""
    found = [profile for profile in book.profiles.values() if profile.vendor == vendor]
    return max(found, key=lambda profile: profile.dated, default=book.default)


def _vendor(recorded: Recorded) -> str:
    model = recorded.model.lower()
    if recorded.dialect is Dialect.ANTHROPIC or _is_any(model, _ANTHROPIC_MODELS):
        return "anthropic"
    if recorded.dialect is not Dialect.DASHSCOPE and _is_any(model, _OPENAI_MODELS):
        return "openai"
    return "dashscope"


def _is_any(model: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(model, pattern) for pattern in patterns)
