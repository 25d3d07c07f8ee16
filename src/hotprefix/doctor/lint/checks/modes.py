"""Does the API match the mode?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.context import Context, is_marker
from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.request import SESSION_HEADER

_CACHE_FIELD = re.compile(
    r"(?:context_|prompt_)?cache_?(?:key|id|name)|kv_cache\w*|(?:use|enable|with)_(?:context_|prompt_)?cache",
    re.IGNORECASE,
)
_KNOWN = ("prompt_cache_key",)
_HEADER_PATH = f"headers.{SESSION_HEADER}"


def check_modes(context: Context) -> Iterator[LintFinding]:
    """Markers, the session header and fields that no API has."""
    request = context.request
    is_responses = request.dialect is Dialect.RESPONSES
    marker = next((use for use in request.markers if is_marker(use.value)), None)
    header = request.session_header
    if header not in ("", "enable", "disable") and not header.startswith("{"):
        yield context.finding("HP404", _HEADER_PATH, shown=header)
    if marker is not None and header == "enable":
        yield context.finding("HP403", marker.path)
    elif marker is not None and is_responses:
        yield context.finding("HP401", marker.path)
    elif header == "enable" and not is_responses:
        yield context.finding("HP402", _HEADER_PATH)
    for name in request.settings:
        if _CACHE_FIELD.fullmatch(name) and name not in _KNOWN:
            path = name if name in request.recorded.body else f"{request.settings_root}{name}"
            yield context.finding("HP407", path, field=name)
    if is_responses:
        yield from _resent(context)


def _resent(context: Context) -> Iterator[LintFinding]:
    request = context.request
    earlier = [block for block in request.blocks if block.role == "assistant"]
    if isinstance(request.settings.get("previous_response_id"), str) and earlier:
        yield context.finding("HP408", earlier[0].path, count=len({block.message for block in earlier}))
