"""What has no effect in a Responses request, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hotprefix.api.responses.items import CallOutputItem, MessageItem
from hotprefix.api.responses.request import ResponsesRequest
from hotprefix.api.session_header import SESSION_HEADER

_ADVICE = f"Responses take the header {SESSION_HEADER}: enable"


def marker_warnings(request: ResponsesRequest) -> list[str]:
    """Cache markers belong to Chat: here they change nothing."""
    return [f"{path} has no effect: {_ADVICE}" for path, mark in _marks(request) if mark is not None]


def _marks(request: ResponsesRequest) -> Iterator[tuple[str, Any]]:
    yield "cache_control", request.cache_control
    for number, item in enumerate(request.input):
        path = f"input[{number}]"
        if isinstance(item, MessageItem):
            yield f"{path}.cache_control", item.cache_control
            yield from _in_parts(f"{path}.content", item.content)
        elif isinstance(item, CallOutputItem):
            yield f"{path}.cache_control", item.cache_control
            yield from _in_parts(f"{path}.output", item.output)
    for number, tool in enumerate(request.tools or ()):
        yield f"tools[{number}].cache_control", (tool.model_extra or {}).get("cache_control")


def _in_parts(path: str, content: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(content, str):
        for number, part in enumerate(content):
            yield f"{path}[{number}].cache_control", part.cache_control
