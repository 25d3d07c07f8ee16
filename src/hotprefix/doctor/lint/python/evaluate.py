"""Expressions → what they may stand for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

from hotprefix.doctor.lint.names import cause_of_name
from hotprefix.doctor.lint.python import sources, strings
from hotprefix.doctor.lint.python.module import Module
from hotprefix.doctor.lint.python.scope import Scope
from hotprefix.doctor.lint.python.value import (
    Subject,
    Value,
    apart,
    children,
    concatenated,
    either,
    joined,
    once_a_day,
    text_of,
    unknown,
)
from hotprefix.doctor.lint.suspect import Cause, Suspect

Called = Callable[[ast.Call, str, Scope], Value]
Imported = Callable[[str], Value | None]
"""What the full name of an import stands for, if it is of the project."""

_DEEPEST = 60
_MOST_COPIES = 10_000
_OF_A_DAY = 10
"""Characters of a date in ISO form."""


class Evaluator:
    """Works out expressions of one module. `called` knows what calls give, `imported` other modules."""

    def __init__(self, module: Module, called: Called, imported: Imported) -> None:
        self._module = module
        self._called = called
        self._imported = imported
        self._depth = 0

    def value(self, node: ast.AST | None, scope: Scope) -> Value:
        """What an expression stands for; unknown where it can't be told."""
        if node is None or self._depth > _DEEPEST:
            return unknown(node, "…")
        self._depth += 1
        try:
            return self._value(node, scope)
        finally:
            self._depth -= 1

    def suspect(self, cause: Cause, node: ast.expr) -> Suspect:
        """A suspect that comes from an expression."""
        line, column = self._module.place(node)
        return Suspect(cause, 0, 0, self._module.code(node), line, column, file=self._module.file)

    def _value(self, node: ast.AST, scope: Scope) -> Value:
        match node:
            case ast.Constant():
                return _constant(node)
            case ast.Name(id=name):
                return scope.get(name) or self._named(node, name)
            case ast.Call():
                return self._called(node, self._module.dotted(node.func), scope)
            case ast.Attribute():
                return self._attribute(node, scope)
            case ast.Subscript():
                return self._subscript(node, scope)
            case ast.BinOp():
                return self._operation(node, scope)
        return self._made(node, scope)

    def _made(self, node: ast.AST, scope: Scope) -> Value:
        """What is written out: texts with holes, lists, objects."""
        match node:
            case ast.JoinedStr(values=values):
                return concatenated(node, [self.value(part, scope) for part in values])
            case ast.FormattedValue():
                return self._formatted(node, scope)
            case ast.Dict():
                return self._dict(node, scope)
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return self._list(node, parts, scope)
            case ast.Set(elts=parts):
                made = self._list(node, parts, scope)
                return made.with_suspects((self.suspect(Cause.ORDER, node),))
            case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
                return self._comprehension(node, scope)
        return self._one_of(node, scope)

    def _one_of(self, node: ast.AST, scope: Scope) -> Value:
        match node:
            case ast.IfExp(body=body, orelse=other):
                return either([self.value(body, scope), self.value(other, scope)]) or unknown(node, "…")
            case ast.BoolOp(values=values):
                return either([self.value(part, scope) for part in values]) or unknown(node, "…")
            case ast.Await(value=inner) | ast.Starred(value=inner):
                return self.value(inner, scope)
            case ast.NamedExpr(target=ast.Name(id=name), value=inner):
                found = self.value(inner, scope)
                scope.set(name, found)
                return found
        return unknown(node, "…")

    def _formatted(self, node: ast.FormattedValue, scope: Scope) -> Value:
        found = self.value(node.value, scope)
        spec = text_of(self.value(node.format_spec, scope))[0] if node.format_spec is not None else ""
        text, suspects = text_of(strings.shown_with(spec, found))
        return Value(node, text=text, suspects=suspects)

    def _named(self, node: ast.Name, name: str) -> Value:
        """A name that nobody here has set."""
        full = self._module.imports.get(name)
        if full is not None:
            found = self._imported(full)
            if found is not None:
                return replace(found, node=node)
        if full is not None and not full.startswith("."):
            return unknown(node, name)
        return self._guessed(node, name)

    def _guessed(self, node: ast.expr, name: str) -> Value:
        cause = cause_of_name(name)
        return unknown(node, name, [self.suspect(cause, node)] if cause is not None else [])

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        dotted = self._module.dotted(node)
        known = scope.get(dotted) if dotted else None
        if known is not None:
            return known
        known = self.module_member(dotted)
        if known is not None:
            return replace(known, node=node)
        inner = self.value(node.value, scope)
        found = self.of_subject(inner.subject, node)
        if found is not None:
            return found
        if inner.members is not None and node.attr in inner.members:
            return inner.members[node.attr]
        if inner.suspects:
            is_day = node.attr in sources.DAYS
            suspects = once_a_day(inner.suspects) if is_day else inner.suspects
            return unknown(node, dotted or node.attr, suspects)
        name = dotted.removeprefix("self.") if dotted else node.attr
        return self._guessed(node, ".".join(name.split(".")[-2:]))

    def module_member(self, dotted: str) -> Value | None:
        """What a full name stands for that begins with an imported module: `import a.b`, then `a.b.c`."""
        if not dotted or dotted.lstrip(".").split(".", 1)[0] not in self._module.roots:
            return None
        return self._imported(dotted)

    def of_subject(self, subject: Subject | None, node: ast.Attribute) -> Value | None:
        """An attribute of a function, a class, an object or a module of the project."""
        found = subject.attribute(node.attr) if subject is not None else None
        return replace(found, node=node) if found is not None and found.node is None else found

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        if self._module.dotted(node.value) == "os.environ":
            return self.variable(node, self.value(node.slice, scope))
        inner, key = self.value(node.value, scope), self.value(node.slice, scope)
        if inner.members is not None and key.text is not None:
            return inner.members.get(key.text) or unknown(node, key.text)
        if (
            inner.items is not None
            and isinstance(key.scalar, int)
            and -len(inner.items) <= key.scalar < len(inner.items)
        ):
            return inner.items[key.scalar]
        if _leaves_the_day(node, key):
            return replace(inner, suspects=once_a_day(inner.suspects))
        if inner.text is not None or isinstance(node.slice, ast.Slice):
            return inner
        if key.text is not None and not inner.suspects:
            return self._guessed(node, f"{inner.name}.{key.text}")
        return unknown(node, inner.name, inner.suspects)

    def variable(self, node: ast.expr, name: Value) -> Value:
        """An environment variable."""
        cause = sources.cause_of_variable(name.text or "")
        return unknown(node, name.text or "environ", [self.suspect(cause, node)] if cause else [])

    def _operation(self, node: ast.BinOp, scope: Scope) -> Value:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(node.op, ast.Mod) and left.text is not None:
            return strings.percent(node, left, right)
        if isinstance(node.op, ast.Add):
            return self.added(node, left, right)
        if isinstance(node.op, ast.Mult) and left.text is not None and isinstance(right.scalar, int):
            return concatenated(node, [left] * max(0, min(right.scalar, _MOST_COPIES)))
        return unknown(node, left.name, joined(left.suspects, right.suspects))

    def added(self, node: ast.AST, left: Value, right: Value) -> Value:
        """Texts or lists put together."""
        if left.text is not None or right.text is not None:
            return concatenated(node, [left, right])
        if left.items is not None or right.items is not None:
            items: list[Value] = []
            for side in (left, right):
                items += side.items if side.items is not None else [replace(side, is_repeated=False)]
            return Value(
                node, items=items, suspects=joined(left.suspects, right.suspects) if left.items else ()
            )
        return unknown(node, left.name, joined(left.suspects, right.suspects))

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        members: dict[str, Value] = {}
        made = Value(node, members=members)
        for key, part in zip(node.keys, node.values, strict=True):
            found = self.value(part, scope)
            if key is None:
                self.merge(made, found)
                continue
            name = self.value(key, scope)
            if name.text is not None:
                members[name.text] = found
            else:
                made.is_open = True
        return made

    def merge(self, into: Value, other: Value) -> None:
        """`**other` or `update(other)`."""
        if into.members is None:
            return
        if other.members is None:
            into.is_open = True
        else:
            into.members.update({name: apart(item, into) for name, item in other.members.items()})
            into.is_open = into.is_open or other.is_open

    def _list(self, node: ast.AST, parts: Sequence[ast.expr], scope: Scope) -> Value:
        items: list[Value] = []
        suspects: tuple[Suspect, ...] = ()
        for part in parts:
            found = self.value(part, scope)
            if isinstance(part, ast.Starred) and found.items is not None:
                items += found.items
                suspects = joined(suspects, found.suspects)
            else:
                items.append(found)
        return Value(node, items=items, suspects=suspects)

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp, scope: Scope) -> Value:
        inner = scope.branch()
        suspects: tuple[Suspect, ...] = ()
        for generator in node.generators:
            over = self.value(generator.iter, inner)
            suspects = joined(suspects, (s for s in over.suspects if s.cause is Cause.ORDER))
            self.bind(generator.target, over, inner)
        element = replace(self.value(node.elt, inner), is_repeated=True)
        if isinstance(node, ast.SetComp):
            suspects = joined(suspects, (self.suspect(Cause.ORDER, node),))
        return Value(node, items=[element], suspects=suspects, is_open=True)

    def bind(self, target: ast.expr, over: Value, scope: Scope) -> None:
        """A loop's variable: one of the elements, and as much suspected as they are."""
        parts = list(children(over))
        found = either(parts) if parts else None
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                single = found if found is not None and isinstance(target, ast.Name) else None
                value = single or self._guessed(name, name.id)
                scope.set(
                    name.id, value.with_suspects(s for s in over.suspects if s.cause is not Cause.ORDER)
                )


def _leaves_the_day(node: ast.Subscript, key: Value) -> bool:
    """Whether the first part of a moment's text is taken: `[:10]`, `.split("T")[0]`."""
    match node.slice:
        case ast.Slice(lower=None, upper=ast.Constant(value=int(end)), step=None):
            return 0 < end <= _OF_A_DAY
    call = node.value.func if isinstance(node.value, ast.Call) else None
    return key.scalar == 0 and isinstance(call, ast.Attribute) and call.attr in ("split", "partition")


def _constant(node: ast.Constant) -> Value:
    if isinstance(node.value, str):
        return Value(node, text=node.value)
    if isinstance(node.value, bytes | type(...)):
        return unknown(node, "…")
    return Value(node, scalar=node.value)
