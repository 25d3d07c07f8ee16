"""Responses of little content."""

from __future__ import annotations

from typing import Any

from hotprefix.sessions.response import StoredResponse

WEEK = 7 * 86_400.0


def turn(name: str, tenant: str = "t", previous: StoredResponse | None = None, **more: Any) -> StoredResponse:
    """A response of one input and one output item."""
    fields: dict[str, Any] = {
        "response_id": name,
        "tenant": tenant,
        "model": "m",
        "created": 0.0,
        "retention": WEEK,
        "document": {"id": name, "output": [{"type": "message", "text": f"answer of {name}"}]},
        "input_items": [{"type": "message", "text": f"question of {name}"}],
    }
    if previous is not None:
        fields |= {"previous_id": previous.response_id, "depth": previous.depth + 1}
    return StoredResponse(**fields | more)
