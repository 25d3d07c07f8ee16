"""What a variable's name says of its value: a time, an id, a place, or what each request brings."""

from __future__ import annotations

import re

from hotprefix.doctor.lint.source_table import causes, source_table
from hotprefix.doctor.lint.suspect import Cause

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")


def cause_of_name(name: str) -> Cause | None:
    """`current_time` → TIME, `user.id` → ID, `question` → VARIABLE; None for names that say nothing.

    A constant in capitals is set once, so its name tells nothing either.
    """
    if name.isupper():
        return None
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return None
    known, ids = causes("names"), source_table()["names-of-ids"]
    if len(words) == 1:
        return known.get(words[0])
    if words[-1] in ids["endings"] and words[-2] in ids["owners"]:
        return Cause.ID
    found = known.get(f"{words[-2]} {words[-1]}") or known.get("".join(words))
    return found or (Cause.ID if known.get(words[-1]) is Cause.ID and words[-1] != "uid" else None)
