"""The four disjoint classes that every prompt token belongs to, and what was drawn."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from hotprefix.base.errors import LogicError


class Mode(StrEnum):
    """Which cache a request used."""

    NONE = "none"
    IMPLICIT = "implicit"
    EXPLICIT = "explicit"
    SESSION = "session"


@dataclass(frozen=True, slots=True)
class TokenClasses:
    """Prompt tokens of one request, each in exactly one class, and its output tokens.

    `computed` are billed at the input price, `read` at the price of the mode's hits, `written` at
    the write price of their TTL name, `free` not at all. Their sum is the prompt. Every dialect's
    usage object and every amount of money is derived from these.
    """

    mode: Mode
    computed: int
    read: int
    written: dict[str, int] = field(default_factory=dict)
    free: int = 0
    output: int = 0

    def __post_init__(self) -> None:
        if min(self.computed, self.read, self.free, self.output, *self.written.values(), 0) < 0:
            raise LogicError(f"a token class is negative: {self}")

    @property
    def write_total(self) -> int:
        """Tokens written, whatever their TTL."""
        return sum(self.written.values())

    @property
    def prompt(self) -> int:
        """All prompt tokens."""
        return self.computed + self.read + self.write_total + self.free
