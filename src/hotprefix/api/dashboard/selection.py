"""Which requests are looked at: a time, a tenant, a scene, a reason."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from hotprefix.api.dashboard.gate import Visitor
from hotprefix.base.errors import InvalidRequest
from hotprefix.ledger.columns import Value
from hotprefix.ledger.query import Span

FIELDS = ("last", "since", "until", "tenant", "scene", "reason")
"""Names in the query. `last` is in seconds and goes before `since`; times are Unix seconds."""


@dataclass(frozen=True, slots=True)
class Selection(Span):
    """A span of time with conditions; None is any value, and an empty text is one. `is_bound` if the
    tenant is not the visitor's choice."""

    tenant: str | None = None
    scene: str | None = None
    reason: str | None = None
    is_bound: bool = False

    def where(self) -> tuple[str, tuple[Value, ...]]:
        # Not super(): a dataclass with slots is another class than the one it was written in.
        clause, values = Span.where(self)
        names = ("tenant", "scene", "reason")
        chosen = [(name, value) for name in names if (value := getattr(self, name)) is not None]
        parts = [clause.removeprefix("WHERE ")] if clause else []
        parts += [f"{name} = ?" for name, _ in chosen]
        joined = " AND ".join(parts)
        return (f"WHERE {joined}" if joined else ""), (*values, *(value for _, value in chosen))

    def without(self, name: str) -> Selection:
        """The same with any value of a field, unless it is bound."""
        return Selection(
            since=self.since,
            until=self.until,
            tenant=None if name == "tenant" and not self.is_bound else self.tenant,
            scene=None if name == "scene" else self.scene,
            reason=None if name == "reason" else self.reason,
            is_bound=self.is_bound,
        )


def selection_of(query: Mapping[str, str], visitor: Visitor, now: float) -> Selection:
    """What is asked for, and of that what the visitor may see. Raises `InvalidRequest`."""
    last = _number(query, "last")
    since = _number(query, "since") if last is None else now - last
    tenant = query.get("tenant") if visitor.sees_all else visitor.tenant
    return Selection(
        since=since,
        until=_number(query, "until"),
        tenant=tenant,
        scene=query.get("scene"),
        reason=query.get("reason"),
        is_bound=not visitor.sees_all,
    )


def _number(query: Mapping[str, str], name: str) -> float | None:
    text = query.get(name, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1e12:
        raise InvalidRequest(f"Invalid value for '{name}': write seconds, such as 3600.", param=name)
    return value
