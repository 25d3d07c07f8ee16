"""A module's statements, followed from top to bottom: what is assigned, put into lists, given back, sent."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hotprefix.doctor.lint.python.calls import Calls
from hotprefix.doctor.lint.python.module import Function, Module
from hotprefix.doctor.lint.python.scope import Scope, parameter
from hotprefix.doctor.lint.python.sinks import Sink, Sinks
from hotprefix.doctor.lint.python.value import Value, concatenated, deep_suspects, either, joined
from hotprefix.doctor.lint.suspect import Cause, Suspect

_DEEPEST_CALL = 3
_MOST_RUNS = 2_000
_GROWING = ("append", "extend", "insert", "update", "setdefault", "add")


@dataclass(slots=True)
class _Frame:
    """One run of a function. `orders`: the unordered things that loops around this statement go over."""

    scope: Scope
    owner: str = ""
    returned: list[Value] = field(default_factory=list)
    orders: list[tuple[Suspect, ...]] = field(default_factory=list)
    appended: list[list[Value]] = field(default_factory=list)


class Program:
    """Follows every function once with unknown arguments, and again where it is called."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._sinks = Sinks(module)
        self._calls = Calls(module, self._sinks, self._called)
        self._evaluator = self._calls.evaluator
        self._globals = Scope()
        self._classes: dict[str, Scope] = {}
        self._running: list[str] = []
        self._runs = 0

    def sinks(self) -> list[Sink]:
        """All requests of the module."""
        top = _Frame(self._globals)
        self._block(self._module.tree.body, top)
        self._freeze(self._globals)
        for name, function in self._functions_in_order():
            self._run(name, function, [], {})
        return self._sinks.finish()

    def _functions_in_order(self) -> list[tuple[str, Function]]:
        # What __init__ sets is there for the other methods.
        found = self._module.functions.items()
        return sorted(found, key=lambda item: not item[0].endswith(".__init__"))

    def _freeze(self, scope: Scope) -> None:
        """What a module computes when it is imported stays for the whole process."""
        for name, value in list(scope.own()):
            scope.set(name, _frozen(value))

    def _called(
        self, dotted: str, args: list[Value], named: Mapping[str, Value], scope: Scope
    ) -> Value | None:
        owner = self._running[-1].rpartition(".")[0] if self._running else ""
        name = f"{owner}.{dotted[5:]}" if dotted.startswith(("self.", "cls.")) and owner else dotted
        function = self._module.functions.get(name)
        if function is None or len(self._running) >= _DEEPEST_CALL or name in self._running:
            return None
        return self._run(name, function, args, named)

    def _run(
        self, name: str, function: Function, args: list[Value], named: Mapping[str, Value]
    ) -> Value | None:
        self._runs += 1
        if self._runs > _MOST_RUNS:
            return None
        owner = name.rpartition(".")[0]
        frame = _Frame(Scope(self._classes.get(owner, self._globals)), owner)
        self._parameters(function, args, named, frame.scope, is_method=bool(owner))
        self._running.append(name)
        try:
            self._block(function.body, frame)
        finally:
            self._running.pop()
        if owner:
            self._keep_attributes(owner, frame.scope)
        for value in frame.returned:
            self._sinks.returned(function.name, value)
        return either(frame.returned)

    def _keep_attributes(self, owner: str, scope: Scope) -> None:
        shared = self._classes.setdefault(owner, Scope(self._globals))
        for name, value in scope.own():
            if name.startswith(("self.", "cls.")):
                shared.set(name, value)

    def _parameters(
        self,
        function: Function,
        args: list[Value],
        named: Mapping[str, Value],
        scope: Scope,
        *,
        is_method: bool,
    ) -> None:
        given = function.args
        names = [*given.posonlyargs, *given.args]
        if is_method and names and names[0].arg in ("self", "cls"):
            names = names[1:]
        defaults = dict(zip([arg.arg for arg in reversed(names)], reversed(given.defaults), strict=False))
        for number, arg in enumerate((*names, *given.kwonlyargs)):
            line, column = self._module.place(arg)
            value = args[number] if number < len(args) and number < len(names) else named.get(arg.arg)
            if value is None and arg.arg == "model" and arg.arg in defaults:
                value = self._evaluator.value(defaults[arg.arg], self._globals)
            scope.set(arg.arg, value or parameter(arg.arg, line, column))

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
                return
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

    def _class(self, node: ast.ClassDef) -> None:
        shared = self._classes.setdefault(node.name, Scope(self._globals))
        inner = _Frame(Scope(self._globals), node.name)
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
            holder.members[key.text] = value
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
