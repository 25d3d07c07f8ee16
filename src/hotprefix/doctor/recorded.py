"""A request as a file has it, with its answer if that was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.place import Place


@dataclass(frozen=True, slots=True)
class Recorded:
    """`body` is the request's JSON. `response` is the answer's, `at` Unix seconds, `first_token` seconds to
    it, `session` and `headers` as far as they were written down."""

    dialect: Dialect
    body: Mapping[str, Any]
    place: Place
    response: Mapping[str, Any] | None = None
    at: float | None = None
    first_token: float | None = None
    session: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def model(self) -> str:
        """The model that it names."""
        return str(self.body.get("model", ""))
