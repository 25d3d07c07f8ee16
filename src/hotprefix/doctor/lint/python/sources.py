"""Where a program gets what changes: clocks, random numbers, the machine, folders, sets."""

from __future__ import annotations

import re

from hotprefix.doctor.lint.names import cause_of_name
from hotprefix.doctor.lint.source_table import causes, source_table
from hotprefix.doctor.lint.suspect import Cause

CLOCK_CODES = re.compile(r"%-?[HIMSfpcXTRrs]")
"""Codes of `strftime` that show more than the day."""

LISTS = ("os.listdir", "glob.glob")
"""Listings that are lists."""

UNSORTABLE = ("os.scandir", "os.walk")
"""Listings that can't be sorted, or lose something by it."""

_LISTINGS = ("os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob")
_IDS = re.compile(r"(?:USER|SESSION|REQUEST|CUSTOMER|TRACE)_?(?:ID|UUID|NAME|EMAIL)$")
_GETTER = re.compile(r"^_*(?:get|fetch|make|new|generate|gen|current)_")

METHODS_OF_ARGUMENTS = frozenset(
    (
        "format",
        "join",
        "substitute",
        "safe_substitute",
        "render",
        "format_map",
        "format_messages",
        "render_async",
    )
)
"""Methods whose result is made of their arguments too."""

CLEARING = frozenset(
    (
        *(
            "read_text",
            "read",
            "read_bytes",
            "readlines",
            "load",
            "loads",
            "exists",
            "is_file",
            "is_dir",
            "get",
        ),
        *("count", "index", "startswith", "endswith", "create", "invoke", "ainvoke", "post", "send", "parse"),
        *("execute", "query", "total_seconds"),
    )
)
"""Methods whose result has nothing of what they are called on."""

DAYS = frozenset(("date", "year", "month", "day", "weekday", "isoweekday", "toordinal", "isocalendar"))
"""What of a moment changes once a day at most."""


def cause_of_call(dotted: str) -> Cause | None:
    """Why the result of a function changes, if it does. `dotted` is its full name, imports resolved."""
    last = dotted.rsplit(".", 1)[-1]
    found = causes("calls").get(dotted) or causes("methods").get(last)
    if found is not None:
        return found
    if dotted.startswith("numpy.random."):
        return Cause.ID
    named = cause_of_name(_GETTER.sub("", last)) if "." not in dotted or dotted.startswith("self.") else None
    return named if named is not Cause.VARIABLE else None


def is_listing(dotted: str) -> bool:
    """Whether a function lists files, in the order in which the disk has them."""
    return dotted in _LISTINGS or dotted.rsplit(".", 1)[-1] in ("iterdir", "rglob", "glob")


def passes_arguments(dotted: str) -> bool:
    """Whether a function's result is made of its arguments."""
    return dotted in source_table()["functions"]["pass"]


def cause_of_variable(name: str) -> Cause | None:
    """Of an environment variable."""
    return causes("variables").get(name) or (Cause.ID if _IDS.search(name) else None)
