"""How bad a finding is."""

from __future__ import annotations

from enum import StrEnum


class Severity(StrEnum):
    """`INFO` costs little or is uncertain, `WARNING` costs tokens, `ERROR` is broken or was seen to cost."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """Larger is worse."""
        return _ORDER.index(self)


_ORDER = (Severity.INFO, Severity.WARNING, Severity.ERROR)
