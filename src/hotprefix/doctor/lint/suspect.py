"""Text that is likely to be another one in the next request, and JSON that a program will fill in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from hotprefix.doctor.lint.edits import Fix


class Cause(StrEnum):
    """Why a piece of text may change. OPEN: it is not known here, and need not change."""

    TIME = "time"
    DAY = "day"
    ID = "id"
    ENV = "environment"
    HEADER = "client header"
    ORDER = "order"
    JSON = "json"
    VARIABLE = "variable"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Suspect:
    """Characters `start` to `end` of a text. `shown` is what people see: the text, or the code.

    In programs `line` and `column` (from 1) say where it comes from, in `file` if that is another one than
    that of the request; `is_frozen` that it is computed once for each process, `is_kept` once for the life
    of an object; `fix` removes the cause.
    """

    cause: Cause
    start: int
    end: int
    shown: str
    line: int = 0
    column: int = 0
    is_frozen: bool = False
    is_kept: bool = False
    file: str = ""
    fix: Fix | None = None

    def moved(self, by: int) -> Suspect:
        """The same, `by` characters later."""
        return replace(self, start=self.start + by, end=self.end + by)


class TracedText(str):
    """A text that a program or template makes: `suspects` are in it, what is unknown shows as `{name}`."""

    __slots__ = ("suspects",)
    suspects: tuple[Suspect, ...]

    def __new__(cls, text: str, suspects: Iterable[Suspect] = ()) -> TracedText:
        made = super().__new__(cls, text)
        made.suspects = tuple(suspects)
        return made


class Hole:
    """JSON that is only known when the program runs. `suspects` are what it will be made of."""

    __slots__ = ("name", "suspects")

    def __init__(self, name: str = "…", suspects: Iterable[Suspect] = ()) -> None:
        self.name = name
        self.suspects = tuple(suspects)

    def __repr__(self) -> str:
        return f"{{{self.name}}}"


def is_known(value: Any) -> bool:
    """Whether a value is JSON and not a hole."""
    return not isinstance(value, Hole)
