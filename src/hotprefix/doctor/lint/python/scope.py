"""The names that a piece of a program sees."""

from __future__ import annotations

from collections.abc import Iterator

from hotprefix.doctor.lint.names import cause_of_name
from hotprefix.doctor.lint.python.value import Value, either, unknown
from hotprefix.doctor.lint.suspect import Cause, Suspect


class Scope:
    """Names and attributes (`self.prompt`) with their values; what is not here is looked for in `outer`."""

    def __init__(self, outer: Scope | None = None) -> None:
        self._outer = outer
        self._values: dict[str, Value] = {}

    def get(self, name: str) -> Value | None:
        """The value of a name; None if it is not known."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope._values:
                return scope._values[name]
            scope = scope._outer
        return None

    def set(self, name: str, value: Value) -> None:
        """A name has this value from here on."""
        self._values[name] = value

    def branch(self) -> Scope:
        """The same names, to follow one of several ways."""
        made = Scope(self._outer)
        made._values = dict(self._values)
        return made

    def join(self, ways: list[Scope]) -> None:
        """After several ways: each name has the value of one of them, the one that tells most."""
        for name in dict.fromkeys(name for way in ways for name in way._values):
            values = [way._values[name] for way in ways if name in way._values]
            found = values[0] if len({id(value) for value in values}) == 1 else either(values)
            if found is not None:
                self._values[name] = found

    def own(self) -> Iterator[tuple[str, Value]]:
        """What was set here."""
        yield from self._values.items()


def parameter(name: str, line: int, column: int, file: str = "") -> Value:
    """What a caller will give; its name may tell what it is."""
    cause = cause_of_name(name)
    found = [Suspect(cause, 0, 0, name, line, column, file=file)] if cause is not None else []
    return unknown(None, name, found)


def is_changing(suspect: Suspect) -> bool:
    """Whether a suspect is one, rather than something that is not known here."""
    return suspect.cause not in (Cause.OPEN, Cause.VARIABLE)
