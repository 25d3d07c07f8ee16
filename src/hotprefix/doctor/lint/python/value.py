"""What an expression of a program may stand for, as far as its source tells."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

from hotprefix.doctor.lint.suspect import Cause, Hole, Suspect, TracedText


class Absent(Enum):
    """No scalar; None is one."""

    ABSENT = 0


class Subject(Protocol):
    """What a function, a class, an object or a module of the project is; None is given for what it can't."""

    def call(self, args: Sequence[Value], named: Mapping[str, Value]) -> Value | None:
        """What a call of it gives."""
        ...

    def attribute(self, name: str) -> Value | None:
        """What it has under a name."""
        ...


@dataclass(slots=True, eq=False)
class Value:
    """A text, a scalar, a list (`items`) or an object (`members`); if none of them, it is unknown.

    `suspects` of a text have their places in it; those of anything else say what it is made of.
    `is_open`: more is in it than is known. `is_repeated`: put into a list once for each turn of a loop.
    `subject`: it is a function, class, object or module of the project.
    """

    node: ast.AST | None = None
    text: str | None = None
    scalar: Any = Absent.ABSENT
    items: list[Value] | None = None
    members: dict[str, Value] | None = None
    suspects: tuple[Suspect, ...] = ()
    name: str = "…"
    is_open: bool = False
    is_repeated: bool = False
    subject: Subject | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known of it but its name."""
        return (
            self.text is None and self.scalar is Absent.ABSENT and self.items is None and self.members is None
        )

    def with_suspects(self, suspects: Iterable[Suspect]) -> Value:
        """Made of these as well."""
        more = tuple(suspects)
        return replace(self, suspects=joined(self.suspects, more)) if more else self


def unknown(node: ast.AST | None, name: str, suspects: Iterable[Suspect] = ()) -> Value:
    """A value of which only this is known."""
    return Value(node, name=name, suspects=tuple(suspects))


def joined(*groups: Iterable[Suspect]) -> tuple[Suspect, ...]:
    """All suspects, each once."""
    return tuple(dict.fromkeys(suspect for group in groups for suspect in group))


def once_a_day(suspects: Iterable[Suspect]) -> tuple[Suspect, ...]:
    """The suspects of a moment of which only the day is left."""
    return tuple(replace(s, cause=Cause.DAY) if s.cause is Cause.TIME else s for s in suspects)


def text_of(value: Value) -> tuple[str, tuple[Suspect, ...]]:
    """A value written into a text: the characters as far as they are known, and the suspects in them."""
    if value.text is not None:
        return value.text, value.suspects
    if value.scalar is not Absent.ABSENT:
        return str(value.scalar), ()
    shown = f"{{{value.name}}}"
    inner = (suspect for item in children(value) for suspect in text_of(item)[1])
    found = joined(value.suspects, inner)
    if not found:
        found = (Suspect(Cause.OPEN, 0, 0, value.name),)
    return shown, tuple(replace(suspect, start=0, end=len(shown)) for suspect in found)


def concatenated(node: ast.AST, values: Sequence[Value]) -> Value:
    """Texts one after the other."""
    text = ""
    suspects: list[Suspect] = []
    for value in values:
        piece, found = text_of(value)
        suspects += (suspect.moved(len(text)) for suspect in found)
        text += piece
    return Value(node, text=text, suspects=tuple(suspects))


def children(value: Value) -> Iterator[Value]:
    """What is in a list or an object."""
    yield from value.items or ()
    yield from (value.members or {}).values()


def apart(value: Value, holder: Value) -> Value:
    """The value, to be put into `holder`; unknown if that is in it already, as nothing holds itself."""
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if one is holder or (one.items is not None and one.items is holder.items):
            return unknown(value.node, value.name)
        if one.members is not None and one.members is holder.members:
            return unknown(value.node, value.name)
        if id(one) not in seen:
            seen.add(id(one))
            waiting += children(one)
    return value


def either(values: Sequence[Value]) -> Value | None:
    """One value for several that are possible: the one that tells most."""
    return max(values, key=_weight, default=None)


def _weight(value: Value) -> tuple[int, int, int]:
    suspects = sum(suspect.cause is not Cause.OPEN for suspect in deep_suspects(value))
    return suspects, int(not value.is_unknown), len(value.text or "")


def deep_suspects(value: Value, depth: int = 0) -> Iterator[Suspect]:
    """The suspects of a value and of what is in it."""
    yield from value.suspects
    if depth < 12:
        for child in children(value):
            yield from deep_suspects(child, depth + 1)


@dataclass(slots=True)
class Places:
    """Lines and columns of a request's values, by JSON path."""

    by_path: dict[str, ast.AST] = field(default_factory=dict)

    def json(self, value: Value, path: str, depth: int = 0) -> Any:
        """A value as JSON, with holes where it is not known."""
        if value.node is not None:
            self.by_path.setdefault(path, value.node)
        if value.text is not None:
            return TracedText(value.text, value.suspects)
        if value.scalar is not Absent.ABSENT:
            return value.scalar
        if depth > 40:
            return Hole(value.name, value.suspects)
        if value.members is not None:
            return {
                key: self.json(item, f"{path}.{key}" if path else key, depth + 1)
                for key, item in value.members.items()
            }
        if value.items is not None:
            made = [self.json(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(value.items)]
            # What is put in once for each turn of a loop can't be the newest message.
            if made and value.items[-1].is_repeated:
                made.append(Hole("…", value.suspects))
            elif value.is_open or value.suspects:
                made.insert(len(made) - 1 if made else 0, Hole(value.name, value.suspects))
            return made
        return Hole(value.name, value.suspects)
