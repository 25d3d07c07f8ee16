"""Session ids, salts and cache keys of one request."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hotprefix.doctor.lint.context import Context
from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.request import LintRequest, Origin
from hotprefix.doctor.lint.severity import Severity
from hotprefix.doctor.lint.suspect import Cause, Hole, TracedText
from hotprefix.doctor.place import Place

SALTS = ("cache_salt", "prompt_cache_key")
"""Fields that enter the cache's key: requests with other values share nothing."""

_SESSIONS = ("session_id", "sessionId")
_HEADERS = ("x-hotprefix-session", "x-session-id")
_VERSIONED = re.compile(r"@[\w.-]+$|(?:^|[-_.:/])v?\d+(?:[._-]\d+)*$", re.IGNORECASE)


def check_session(context: Context) -> Iterator[LintFinding]:
    """A salt that a program draws anew; in the checklist, ids without a version."""
    request = context.request
    if request.origin is Origin.CODE:
        yield from _salts(context)
    path, session = session_of(request)
    if context.is_strict and session and not _VERSIONED.search(session):
        yield context.finding("HP602", path, shown=session)


def session_of(request: LintRequest) -> tuple[str, str]:
    """The JSON path and value of the request's session id; both empty without one."""
    body, metadata = request.recorded.body, request.settings.get("metadata")
    holders: tuple[tuple[str, Any], ...] = (
        ("", body),
        (request.settings_root, request.settings),
        ("metadata.", metadata),
    )
    for root, holder in holders:
        for name in _SESSIONS:
            if isinstance(holder, Mapping) and isinstance(holder.get(name), str) and holder[name]:
                return f"{root}{name}", str(holder[name])
    for name in _HEADERS:
        if request.recorded.headers.get(name):
            return f"headers.{name}", request.recorded.headers[name]
    return "", request.recorded.session


def _salts(context: Context) -> Iterator[LintFinding]:
    for name in SALTS:
        value = context.request.settings.get(name)
        if not isinstance(value, TracedText | Hole):
            continue
        drawn = next(
            (s for s in value.suspects if s.cause in (Cause.ID, Cause.TIME) and "(" in s.shown), None
        )
        if drawn is not None and not drawn.is_kept:  # one for each conversation is meant so
            file = drawn.file or context.request.recorded.place.file
            place = Place(file, drawn.line, drawn.column, name)
            severity = Severity.INFO if drawn.is_frozen else None
            yield context.finding("HP603", place, severity=severity, field=name, shown=drawn.shown)
