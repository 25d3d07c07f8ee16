"""A module's statements, followed from top to bottom: what is assigned, put into lists, given back, sent."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from hotprefix.doctor.lint.python.calls import Calls
from hotprefix.doctor.lint.python.library import Library
from hotprefix.doctor.lint.python.module import Function, Module
from hotprefix.doctor.lint.python.scope import Scope, parameter
from hotprefix.doctor.lint.python.sinks import Sink, Sinks
from hotprefix.doctor.lint.python.subjects import ClassSubject, FunctionSubject, ObjectSubject
from hotprefix.doctor.lint.python.value import (
    Value,
    apart,
    children,
    concatenated,
    deep_suspects,
    either,
    joined,
)
from hotprefix.doctor.lint.suspect import Cause, Suspect

_DEEPEST_CALL = 6
_DEEPEST_VALUE = 12
_GROWING = ("append", "extend", "insert", "update", "setdefault", "add")


@dataclass(slots=True)
class _Frame:
    """One run of a function called `name`. `orders`: the unordered things that loops around this statement
    go over; `inner` are the functions that are defined in it."""

    scope: Scope
    name: str = ""
    returned: list[Value] = field(default_factory=list)
    orders: list[tuple[Suspect, ...]] = field(default_factory=list)
    appended: list[list[Value]] = field(default_factory=list)
    inner: list[FunctionSubject] = field(default_factory=list)


class Program:
    """Follows every function once with unknown arguments, and again where it is called.

    `path` is where the module is, so that the `library` can find those that it imports.
    """

    def __init__(self, module: Module, path: Path, library: Library) -> None:
        self._module = module
        self._path = path
        self._library = library
        self._sinks = Sinks(module)
        self._calls = Calls(module, self._sinks, self._imported)
        self._evaluator = self._calls.evaluator
        self._globals = Scope()
        self._classes: dict[str, Scope] = {}
        self._running: list[str] = []
        self._known: dict[str, Value | None] = {}

    def begin(self) -> Self:
        """Run the module's own statements."""
        for name in self._module.functions:
            if "." not in name:
                self._globals.set(name, Value(name=name, subject=self._function(name)))
        for name, node in self._module.classes.items():
            self._globals.set(name, Value(name=name, subject=ClassSubject(self, node)))
        self._library.effort.begin()
        self._block(self._module.tree.body, _Frame(self._globals))
        self._freeze(self._globals)
        return self

    def sinks(self) -> list[Sink]:
        """All requests of the module, after `begin`."""
        for name in self._functions_in_order():
            self._follow(self._function(name))
        return self._sinks.finish()

    def exported(self, name: str) -> Value | None:
        """What the module has under a name, after `begin`."""
        found = self._globals.get(name)
        full = self._module.imports.get(name)
        return self._imported(full) if found is None and full is not None else found

    def lineage(self, name: str) -> list[str]:
        """A class and those that it inherits from, in this file."""
        found = [name]
        for known in found:
            node = self._module.classes.get(known)
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)] if node is not None else []
            found += [base for base in bases if base in self._module.classes and base not in found]
        return found

    def method(self, name: str) -> Function | None:
        """A method by its name, `Class.method`."""
        return self._module.functions.get(name)

    def class_scope(self, name: str) -> Scope:
        """What all objects of a class share."""
        if name not in self._classes:
            bases = self.lineage(name)[1:]
            self._classes[name] = Scope(self.class_scope(bases[0]) if bases else self._globals)
        return self._classes[name]

    def _functions_in_order(self) -> list[str]:
        # What __init__ sets is there for the other methods.
        return sorted(self._module.functions, key=lambda name: not name.endswith(".__init__"))

    def _function(self, name: str) -> FunctionSubject:
        function, owner = self._module.functions[name], name.rpartition(".")[0]
        if not owner:
            return FunctionSubject(self, name, function, self._globals)
        shared = self.class_scope(owner)
        return FunctionSubject(self, name, function, shared, ObjectSubject(self, owner, shared))

    def _freeze(self, scope: Scope) -> None:
        """What a module computes when it is imported stays for the whole process."""
        for name, value in list(scope.own()):
            scope.set(name, _frozen(value))

    def _imported(self, full: str) -> Value | None:
        if full not in self._known:
            self._known[full] = self._library.find(self._path, full)
        return self._known[full]

    def run(
        self, subject: FunctionSubject, args: Sequence[Value], named: Mapping[str, Value]
    ) -> Value | None:
        """What a function gives back; None where it gives nothing, calls itself, or is too deep."""
        if len(self._running) >= _DEEPEST_CALL or not self._library.effort.spend():
            return None
        return self._run(subject, args, named, lambda frame: None)

    def _follow(self, subject: FunctionSubject) -> None:
        """Run a function as if someone called it, and then those that are defined within it."""

        def follow_inner(frame: _Frame) -> None:
            for inner in frame.inner:
                self._follow(inner)

        self._library.effort.begin()
        self._run(subject, (), {}, follow_inner)

    def _run(
        self,
        subject: FunctionSubject,
        args: Sequence[Value],
        named: Mapping[str, Value],
        finish: Callable[[_Frame], None],
    ) -> Value | None:
        if subject.name in self._running:
            return None
        function = subject.function
        frame = _Frame(Scope(subject.around), subject.name)
        self._parameters(subject, args, named, frame.scope)
        self._running.append(subject.name)
        try:
            self._block(function.body, frame)
            finish(frame)
        finally:
            self._running.pop()
        if subject.me is not None:
            self._keep_attributes(subject.me, frame.scope, is_made=function.name == "__init__")
        for value in frame.returned:
            self._sinks.returned(function.name, value)
        return either(frame.returned)

    def _keep_attributes(self, me: ObjectSubject, scope: Scope, *, is_made: bool) -> None:
        """What a method sets is there for the others; what is set when an object `is_made`, for its life."""
        for name, value in scope.own():
            if name.startswith(("self.", "cls.")):
                if is_made:
                    _keep(value)
                me.scope.set(name, value)

    def _parameters(
        self, subject: FunctionSubject, args: Sequence[Value], named: Mapping[str, Value], scope: Scope
    ) -> None:
        given = subject.function.args
        names = [*given.posonlyargs, *given.args]
        defaults = dict(zip([arg.arg for arg in reversed(names)], reversed(given.defaults), strict=False))
        defaults |= {
            arg.arg: value
            for arg, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)
            if value is not None
        }
        if subject.has_self and names:
            scope.set(names[0].arg, Value(name=names[0].arg, subject=subject.me))
            names = names[1:]
        for number, arg in enumerate((*names, *given.kwonlyargs)):
            value = args[number] if number < len(args) and number < len(names) else named.get(arg.arg)
            scope.set(arg.arg, value or self._default(arg, defaults.get(arg.arg)))

    def _default(self, arg: ast.arg, default: ast.expr | None) -> Value:
        """What a parameter is that nobody gave: the text that it has by default, or what its name says."""
        guessed = parameter(arg.arg, *self._module.place(arg), self._module.file)
        if default is None or guessed.suspects:
            return guessed
        found = self._evaluator.value(default, self._globals)
        return found if found.text else guessed

    def _block(self, statements: Iterable[ast.stmt], frame: _Frame) -> None:
        for statement in statements:
            self._statement(statement, frame)

    def _statement(self, node: ast.stmt, frame: _Frame) -> None:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self._evaluator.value(value, frame.scope)
                for target in targets:
                    self._assign(target, found, frame)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assign(target, self._evaluator.value(value, frame.scope), frame)
            case ast.AugAssign():
                self._added_to(node, frame)
            case ast.Return(value=value):
                if value is not None:
                    frame.returned.append(self._evaluator.value(value, frame.scope))
            case ast.Expr(value=value):
                self._expression(value, frame)
            case ast.ClassDef():
                self._class(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._define(node, frame)
            case _:
                self._compound(node, frame)

    def _compound(self, node: ast.stmt, frame: _Frame) -> None:
        match node:
            case ast.If():
                self._ways([node.body, node.orelse], frame)
            case ast.For() | ast.AsyncFor():
                self._loop(node, frame)
            case ast.While():
                self._block(node.body, frame)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    found = self._evaluator.value(item.context_expr, frame.scope)
                    if item.optional_vars is not None:
                        self._assign(item.optional_vars, found, frame)
                self._block(node.body, frame)
            case ast.Try() | ast.TryStar():
                self._block(node.body, frame)
                self._ways([[], *(handler.body for handler in node.handlers)], frame)
                self._block([*node.orelse, *node.finalbody], frame)
            case ast.Match():
                self._ways([[], *(case.body for case in node.cases)], frame)

    def _ways(self, bodies: Sequence[list[ast.stmt]], frame: _Frame) -> None:
        outer, ways = frame.scope, []
        for body in bodies:
            frame.scope = outer.branch()
            self._block(body, frame)
            ways.append(frame.scope)
        frame.scope = outer
        outer.join(ways)

    def _loop(self, node: ast.For | ast.AsyncFor, frame: _Frame) -> None:
        over = self._evaluator.value(node.iter, frame.scope)
        self._evaluator.bind(node.target, over, frame.scope)
        frame.orders.append(tuple(s for s in over.suspects if s.cause is Cause.ORDER))
        frame.appended.append([])
        self._block(node.body, frame)
        frame.orders.pop()
        for value in frame.appended.pop():
            value.is_repeated = True
        self._block(node.orelse, frame)

    def _define(self, node: Function, frame: _Frame) -> None:
        """A function within a function; those of the module and of classes are known already."""
        if not frame.name:
            return
        subject = FunctionSubject(self, f"{frame.name}.<locals>.{node.name}", node, frame.scope)
        frame.inner.append(subject)
        frame.scope.set(node.name, Value(name=node.name, subject=subject))

    def _class(self, node: ast.ClassDef) -> None:
        shared = self.class_scope(node.name)
        inner = _Frame(Scope(self._globals))
        self._block(node.body, inner)
        for name, value in inner.scope.own():
            for prefix in ("self", "cls", node.name):
                shared.set(f"{prefix}.{name}", _frozen(value))
            self._globals.set(f"{node.name}.{name}", _frozen(value))

    def _assign(self, target: ast.expr, value: Value, frame: _Frame) -> None:
        match target:
            case ast.Name(id=name):
                frame.scope.set(name, value)
                self._sinks.assigned(name, value)
            case ast.Attribute():
                dotted = self._module.dotted(target)
                if dotted:
                    frame.scope.set(dotted, value)
                    self._sinks.assigned(dotted, value)
            case ast.Subscript():
                self._set_member(target, value, frame)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                known = value.items if value.items is not None and len(value.items) == len(parts) else None
                for number, part in enumerate(parts):
                    self._assign(
                        part, known[number] if known else replace(value, items=None, members=None), frame
                    )

    def _set_member(self, target: ast.Subscript, value: Value, frame: _Frame) -> None:
        holder = self._evaluator.value(target.value, frame.scope)
        key = self._evaluator.value(target.slice, frame.scope)
        if holder.members is not None and key.text is not None:
            holder.members[key.text] = apart(value, holder)
        elif holder.members is not None:
            holder.is_open = True

    def _added_to(self, node: ast.AugAssign, frame: _Frame) -> None:
        old = self._evaluator.value(node.target, frame.scope)
        new = self._evaluator.value(node.value, frame.scope)
        if isinstance(node.op, ast.Add):
            made = self._evaluator.added(node, old, new)
        else:
            made = replace(old, suspects=joined(old.suspects, new.suspects))
        if made.text is not None and any(frame.orders):
            made = _spread(concatenated(node, [made]), frame.orders)
        self._assign(node.target, made, frame)

    def _expression(self, node: ast.expr, frame: _Frame) -> None:
        call = node.value if isinstance(node, ast.Await) else node
        if not (
            isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _GROWING
        ):
            self._evaluator.value(node, frame.scope)
            return
        holder = self._evaluator.value(call.func.value, frame.scope)
        args = [self._evaluator.value(arg, frame.scope) for arg in call.args]
        self._grow(call.func.attr, holder, args, frame)
        for value in args:
            self._sinks.written(value)

    def _grow(self, method: str, holder: Value, args: list[Value], frame: _Frame) -> None:
        if method == "update" and args:
            self._evaluator.merge(holder, args[0])
        if holder.items is None or not args:
            return
        args = [apart(arg, holder) for arg in args]
        match method:
            case "append":
                added = [args[0]]
                holder.items.append(args[0])
            case "extend":
                added = args[0].items if args[0].items is not None else [args[0]]
                holder.items.extend(added)
                holder.suspects = joined(
                    holder.suspects, args[0].suspects if args[0].items is not None else ()
                )
            case "insert" if len(args) > 1:
                added = [args[1]]
                at = args[0].scalar
                holder.items.insert(at if isinstance(at, int) else len(holder.items), args[1])
            case _:
                return
        if frame.appended:
            frame.appended[-1] += added
        for orders in frame.orders:
            holder.suspects = joined(holder.suspects, orders)


def _keep(value: Value, depth: int = 0) -> None:
    """Mark what an object has from its making on, in its place, as others may hold it."""
    value.suspects = tuple(replace(s, is_kept=True) for s in value.suspects)
    for child in children(value) if depth < _DEEPEST_VALUE else ():
        _keep(child, depth + 1)


def _frozen(value: Value) -> Value:
    if not any(True for _ in deep_suspects(value)):
        return value
    made = replace(value, suspects=tuple(replace(s, is_frozen=True) for s in value.suspects))
    if made.items is not None:
        made.items = [_frozen(item) for item in made.items]
    if made.members is not None:
        made.members = {name: _frozen(item) for name, item in made.members.items()}
    return made


def _spread(value: Value, orders: list[tuple[Suspect, ...]]) -> Value:
    """A text that grew in a loop over something unordered."""
    end = len(value.text or "")
    found = tuple(replace(s, start=0, end=end) for group in orders for s in group)
    return replace(value, suspects=joined(value.suspects, found))
