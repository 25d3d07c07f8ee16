"""What calls give: texts, copies, sources of what changes, and the module's own functions."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hotprefix.doctor.lint.edits import Edit, Fix
from hotprefix.doctor.lint.python import sources, strings
from hotprefix.doctor.lint.python.evaluate import Evaluator, Imported
from hotprefix.doctor.lint.python.module import Module
from hotprefix.doctor.lint.python.scope import Scope
from hotprefix.doctor.lint.python.sinks import Sinks, message_of, messages_of
from hotprefix.doctor.lint.python.value import (
    Value,
    children,
    deep_suspects,
    joined,
    once_a_day,
    text_of,
    unknown,
)
from hotprefix.doctor.lint.suspect import Cause

_SAME_TEXT = frozenset(
    (
        *("strip", "lstrip", "rstrip", "lower", "upper", "title", "dedent", "cleandoc", "expandtabs"),
        *("encode", "decode", "removeprefix", "removesuffix", "str", "copy"),
    )
)
_COPIES = frozenset(
    ("list", "tuple", "dict", "reversed", "copy", "deepcopy", "copy.copy", "copy.deepcopy", "iter")
)
_TEMPLATES = frozenset(("Template", "from_string"))
_SETS = frozenset(("set", "frozenset"))
_JSON = frozenset(("json.dumps", "orjson.dumps", "ujson.dumps", "simplejson.dumps"))
_STRFTIME = frozenset(("strftime", "format"))
_ORDERED = frozenset(
    (
        *("model_json_schema", "json_schema", "schema", "model_dump", "asdict", "to_dict", "_asdict"),
        *("load", "loads", "safe_load", "json", "read_json"),
    )
)
"""Functions and methods whose objects have their keys in the order of a class or of a file."""
_DEEPEST = 10


class Calls:
    """Follows calls of one module."""

    def __init__(self, module: Module, sinks: Sinks, imported: Imported) -> None:
        self._module = module
        self._sinks = sinks
        self.evaluator = Evaluator(module, self, imported)

    def __call__(self, node: ast.Call, dotted: str, scope: Scope) -> Value:
        args, named = self._arguments(node, scope)
        found = self._special(node, dotted, args, named, scope)
        if found is None:
            func = node.func
            # Once only: what stands before a method may be a long chain of calls.
            inner = self.evaluator.value(func.value, scope) if isinstance(func, ast.Attribute) else None
            found = self._of_project(node, dotted, inner, scope, args, named)
            if found is None:
                found = self._method(node, dotted, args, named, inner)
        self._sinks.call(node, dotted or self._module.trail(node.func), args, named)
        return found

    def _of_project(
        self,
        node: ast.Call,
        dotted: str,
        inner: Value | None,
        scope: Scope,
        args: list[Value],
        named: Mapping[str, Value],
    ) -> Value | None:
        """Functions, methods and classes of the project."""
        if isinstance(node.func, ast.Attribute):
            known = scope.get(dotted) if dotted else None
            if known is None and inner is not None:
                known = self.evaluator.of_subject(inner.subject, node.func)
            if known is None and dotted:
                known = self.evaluator.module_member(dotted)
        else:
            known = self.evaluator.value(node.func, scope) if isinstance(node.func, ast.Name) else None
        found = known.subject.call(args, named) if known is not None and known.subject is not None else None
        return replace(found, node=node) if found is not None and found.node is None else found

    def _arguments(self, node: ast.Call, scope: Scope) -> tuple[list[Value], dict[str, Value]]:
        args: list[Value] = []
        for part in node.args:
            found = self.evaluator.value(part, scope)
            args += found.items if isinstance(part, ast.Starred) and found.items is not None else [found]
        named: dict[str, Value] = {}
        for keyword in node.keywords:
            found = self.evaluator.value(keyword.value, scope)
            if keyword.arg is not None:
                named[keyword.arg] = found
            else:
                named |= found.members or {}
        return args, named

    def _special(
        self, node: ast.Call, dotted: str, args: list[Value], named: Mapping[str, Value], scope: Scope
    ) -> Value | None:
        """Functions that are known by name."""
        first = args[0] if args else unknown(node, "…")
        if dotted in ("os.getenv", "os.environ.get"):
            return self.evaluator.variable(node, first)
        if dotted in _JSON:
            return self._dumped(node, first, named)
        if dotted == "sorted":
            return _sorted(node, first)
        if dotted in _SETS:
            return (
                replace(first, node=node).with_suspects((self.evaluator.suspect(Cause.ORDER, node),))
                if args
                else None
            )
        if (dotted in _COPIES or dotted.rsplit(".", 1)[-1] in _TEMPLATES) and args:
            return replace(first, node=node)
        if dotted == "dict":
            return Value(node, members=dict(named))
        return self._made(node, dotted, args, named) or self._source(node, dotted, args)

    def _made(
        self, node: ast.Call, dotted: str, args: list[Value], named: Mapping[str, Value]
    ) -> Value | None:
        """Messages and lists of messages."""
        if _last(node) == "from_messages" and args:
            made = messages_of(args[0])
            for item in made.items or ():
                content = (item.members or {}).get("content")
                if content is not None and content.text is not None and item.members is not None:
                    place = self._module.place(content.node) if content.node is not None else (0, 0)
                    item.members["content"] = strings.named_holes(content, *place)
            self._sinks.listed(made)
            return made
        message = message_of(dotted or _last(node), args, named, node)
        if message is not None:
            self._sinks.written(message)
        return message

    def _source(self, node: ast.Call, dotted: str, args: list[Value]) -> Value | None:
        """Calls whose result changes."""
        name = dotted or _last(node)
        if name.startswith("."):  # of the own package, if it was not found
            name = name.rsplit(".", 1)[-1]
        is_own = name in self._module.functions or self.evaluator.module_member(dotted) is not None
        cause = None if is_own else sources.cause_of_call(name)
        if cause is None:
            return None
        formats = [arg.text for arg in args if arg.text is not None and "%" in arg.text]
        if cause is Cause.TIME and formats and not sources.CLOCK_CODES.search(formats[0]):
            cause = Cause.DAY
        suspect = self.evaluator.suspect(cause, node)
        if cause is Cause.ORDER and sources.is_listing(name):
            if self._may_be_sorted(node, name):
                suspect = replace(suspect, fix=Fix(self._module.wrapped(node, "sorted(", ")")))
            if _is_here(node, args):
                here = self.evaluator.suspect(Cause.ENV, node)
                return unknown(node, self._module.code(node, 40), (suspect, here))
        return unknown(node, self._module.code(node, 40), (suspect,))

    def _may_be_sorted(self, node: ast.Call, name: str) -> bool:
        """Whether a sorted list may take the place of a listing.

        What `os.scandir` gives can't be compared, and who uses `os.walk` may change its lists on the way.
        """
        if not self._module.is_located(node) or "files(" in self._module.code(node, 200):
            return False  # resources of a package may lie in an archive, whose paths can't be compared
        if name in sources.UNSORTABLE:
            return False
        if name in sources.LISTS:
            return True
        parent = self._module.parents.get(id(node))
        match parent:
            case ast.For(iter=over) | ast.comprehension(iter=over):
                return over is node
            case ast.Call(func=ast.Name(id="list" | "tuple" | "enumerate")):
                return node in parent.args
        return False

    def _method(
        self, node: ast.Call, dotted: str, args: list[Value], named: Mapping[str, Value], inner: Value | None
    ) -> Value:
        """Methods of what is known, and functions that give back what they get."""
        made = (*args, *named.values())
        if sources.passes_arguments(dotted):
            single = args[0] if len(args) == 1 and not named else None
            is_same = single is not None and dotted.rsplit(".", 1)[-1] in _SAME_TEXT
            if is_same and single is not None and single.text is not None:
                return single
            return self._passed(node, unknown(node, dotted), made)
        if isinstance(node.func, ast.Attribute) and inner is not None:
            known = self._of_text(node, inner, args, named)
            if known is not None:
                return known
            if node.func.attr in sources.CLEARING:
                return unknown(node, self._module.code(node, 40))
            from_arguments = made if node.func.attr in sources.METHODS_OF_ARGUMENTS else ()
            return self._passed(node, inner, from_arguments)
        return unknown(node, self._module.code(node, 40))

    def _passed(self, node: ast.Call, inner: Value, made: tuple[Value, ...]) -> Value:
        suspects = list(inner.suspects)
        for value in made:
            suspects += deep_suspects(value)
        if isinstance(node.func, ast.Attribute) and node.func.attr in _STRFTIME and made == ():
            spec = next((arg.value for arg in node.args if isinstance(arg, ast.Constant)), "")
            shown = strings.shown_with(str(spec), Value(suspects=tuple(suspects)))
            suspects = list(shown.suspects)
        elif isinstance(node.func, ast.Attribute) and node.func.attr in sources.DAYS:
            suspects = list(once_a_day(suspects))
        return unknown(node, self._module.code(node, 40), joined(suspects))

    def _of_text(
        self, node: ast.Call, inner: Value, args: list[Value], named: Mapping[str, Value]
    ) -> Value | None:
        """Methods of texts whose letters are known."""
        if inner.text is None or not isinstance(node.func, ast.Attribute):
            return None
        match node.func.attr:
            case "format" | "format_map":
                values = args[0].members or {} if node.func.attr == "format_map" and args else named
                return strings.formatted(node, inner, args, values)
            case "substitute" | "safe_substitute":
                return strings.substituted(node, inner, named)
            case "render" | "render_async":
                return strings.rendered(node, inner, named)
            case "join" if args:
                return strings.joined_by(node, inner, args[0])
            case "replace" if len(args) >= 2:
                return strings.replaced(node, inner, args[0], args[1])
            case name if name in _SAME_TEXT:
                return inner
        return None

    def _dumped(self, node: ast.Call, value: Value, named: Mapping[str, Value]) -> Value:
        """JSON as text. Its keys come in any order unless they are sorted or written in the program."""
        inner = joined(deep_suspects(value))
        made = Value(node, name=self._module.code(node, 40), suspects=inner)
        made.members = value.members if value.members is not None else None
        made.items = value.items
        if _is_written_out(value) and not inner:
            return Value(node, text=json.dumps(_plain(value)))
        has_rest = any(keyword.arg is None for keyword in node.keywords)
        sorts = named.get("sort_keys")
        is_sorted = (sorts is not None and sorts.scalar is not False) or has_rest or "option" in named
        if is_sorted or _has_known_keys(value):
            return made
        suspect = self.evaluator.suspect(Cause.JSON, node)
        has_option = self._module.dotted(node.func) in ("json.dumps", "simplejson.dumps")
        if sorts is None and has_option and self._module.is_located(node):
            suspect = replace(suspect, fix=self._with_sorted_keys(node))
        return made.with_suspects((suspect,))

    def _with_sorted_keys(self, node: ast.Call) -> Fix:
        at, has_comma = self._module.end_of_arguments(node)
        return Fix((Edit(at, at, " sort_keys=True" if has_comma else ", sort_keys=True"),))


def _sorted(node: ast.AST, value: Value) -> Value:
    return replace(value, node=node, suspects=tuple(s for s in value.suspects if s.cause is not Cause.ORDER))


def _is_written_out(value: Value, depth: int = 0) -> bool:
    """Whether all keys stand in the program, so that their order is always the same."""
    if depth > 10 or value.is_open:
        return depth > 10
    if value.members is not None or value.items is not None:
        return all(_is_written_out(child, depth + 1) for child in children(value))
    return value.text is not None or not value.is_unknown


def _has_known_keys(value: Value, depth: int = 0) -> bool:
    """Whether the keys stand in the program, or come in the order of a class or of a file."""
    if depth > _DEEPEST or (isinstance(value.node, ast.Call) and _last_name(value.node) in _ORDERED):
        return True
    if value.members is not None:
        # What is not known within an object is mostly a text or a number.
        return not value.is_open and all(
            item.is_unknown or _has_known_keys(item, depth + 1) for item in value.members.values()
        )
    if value.items is not None:
        return all(_has_known_keys(item, depth + 1) for item in value.items)
    return not value.is_unknown


def _last_name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else _last(node)


def _plain(value: Value) -> Any:
    if value.members is not None:
        return {name: _plain(item) for name, item in value.members.items()}
    if value.items is not None:
        return [_plain(item) for item in value.items]
    return value.text if value.text is not None else value.scalar


def _is_here(node: ast.Call, args: list[Value]) -> bool:
    """Whether files of the current folder are listed."""
    if not args and not isinstance(node.func, ast.Attribute):
        return True
    first = args[0] if args else None
    return (
        (first is None and not node.args and ast.unparse(node.func) == "os.listdir")
        or (first is not None and text_of(first)[0] in (".", "*", "./*", "./"))
        or (first is not None and any(s.cause is Cause.ENV for s in first.suspects))
    )


def _last(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else ""
