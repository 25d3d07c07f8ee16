"""Whose caching rules a recorded request is judged by."""

from __future__ import annotations

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.vendors import family_of
from hotprefix.doctor.recorded import Recorded
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.profile import Profile


def rules_for(recorded: Recorded, book: ProfileBook, chosen: str | None = None) -> Profile:
    """The profile called `chosen`, else the newest one of the vendor that the request is for.

    Its model tells, as for `hotprefix lint`; where that is not known, Anthropic's dialect is Anthropic's
    and all else DashScope's. Raises `UnknownProfile`.
    """
    if chosen is not None:
        return book.get(chosen)
    return newest_of(_vendor(recorded), book)


def newest_of(vendor: str, book: ProfileBook) -> Profile:
    """The vendor's profile with the latest date; the default one if it has none."""
    found = [profile for profile in book.profiles.values() if profile.vendor == vendor]
    return max(found, key=lambda profile: profile.dated, default=book.default)


def _vendor(recorded: Recorded) -> str:
    family = family_of(recorded.model) if recorded.model else None
    return family or ("anthropic" if recorded.dialect is Dialect.ANTHROPIC else "dashscope")
