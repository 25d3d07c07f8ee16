"""Functions, classes and objects of a program, as its expressions name them."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from hotprefix.doctor.lint.python.module import Function
from hotprefix.doctor.lint.python.scope import Scope
from hotprefix.doctor.lint.python.value import Value

_READ = ("property", "cached_property")


class Runner(Protocol):
    """What runs a program's functions."""

    def run(
        self, function: FunctionSubject, args: Sequence[Value], named: Mapping[str, Value]
    ) -> Value | None:
        """What a call gives."""
        ...

    def lineage(self, name: str) -> Sequence[str]:
        """A class and those that it inherits from, in this file."""
        ...

    def method(self, name: str) -> Function | None:
        """A method by its name, `Class.method`."""
        ...

    def class_scope(self, name: str) -> Scope:
        """What all objects of a class share."""
        ...


@dataclass(frozen=True)
class FunctionSubject:
    """A function called `name`. It sees what is `around` it; `me` is the object whose method it is."""

    runner: Runner
    name: str
    function: Function
    around: Scope
    me: ObjectSubject | None = None

    @property
    def has_self(self) -> bool:
        """Whether its first parameter is the object."""
        return self.me is not None and "staticmethod" not in _decorators(self.function)

    @property
    def is_read(self) -> bool:
        """Whether it is called where it is named."""
        return any(name in _READ for name in _decorators(self.function))

    def call(self, args: Sequence[Value], named: Mapping[str, Value]) -> Value | None:
        return self.runner.run(self, args, named)

    def attribute(self, name: str) -> Value | None:
        return None


@dataclass(frozen=True)
class ObjectSubject:
    """An object of a class; its attributes are in `scope`, as `self.name`."""

    runner: Runner
    owner: str
    scope: Scope

    def call(self, args: Sequence[Value], named: Mapping[str, Value]) -> Value | None:
        method = self.bound("__call__")
        return method.call(args, named) if method is not None else None

    def attribute(self, name: str) -> Value | None:
        known = self.scope.get(f"self.{name}")
        if known is not None:
            return known
        method = self.bound(name)
        if method is None:
            return None
        return method.call((), {}) if method.is_read else Value(name=name, subject=method)

    def bound(self, name: str) -> FunctionSubject | None:
        """A method of it."""
        for owner in self.runner.lineage(self.owner):
            function = self.runner.method(f"{owner}.{name}")
            if function is not None:
                return FunctionSubject(self.runner, f"{owner}.{name}", function, self.scope, self)
        return None


@dataclass(frozen=True)
class ClassSubject:
    """A class; `fields` are those that a dataclass or model takes, in their order."""

    runner: Runner
    node: ast.ClassDef

    def call(self, args: Sequence[Value], named: Mapping[str, Value]) -> Value | None:
        name = self.node.name
        made = ObjectSubject(self.runner, name, Scope(self.runner.class_scope(name)))
        method = made.bound("__init__")
        if method is not None:
            method.call(args, named)
        else:
            given = dict(zip(self._fields(), args, strict=False)) | dict(named)
            for field, value in given.items():
                made.scope.set(f"self.{field}", value)
        return Value(name=name, subject=made)

    def attribute(self, name: str) -> Value | None:
        return ObjectSubject(self.runner, self.node.name, self.runner.class_scope(self.node.name)).attribute(
            name
        )

    def _fields(self) -> Iterator[str]:
        for statement in self.node.body:
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                yield statement.target.id


def _decorators(function: Function) -> Iterator[str]:
    for node in function.decorator_list:
        inner = node.func if isinstance(node, ast.Call) else node
        yield inner.attr if isinstance(inner, ast.Attribute) else getattr(inner, "id", "")
