"""What calls give: texts, copies, sources of what changes, and the module's own functions."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from hotprefix.doctor.lint.edits import Fix
from hotprefix.doctor.lint.python import sources, strings
from hotprefix.doctor.lint.python.evaluate import Evaluator
from hotprefix.doctor.lint.python.module import Module
from hotprefix.doctor.lint.python.scope import Scope
from hotprefix.doctor.lint.python.sinks import Sinks, message_of, messages_of
from hotprefix.doctor.lint.python.value import Value, children, deep_suspects, joined, text_of, unknown
from hotprefix.doctor.lint.suspect import Cause

Run = Callable[[str, list[Value], Mapping[str, Value], Scope], Value | None]
"""Runs one of the module's own functions with these arguments; None if there is none of that name."""

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


class Calls:
    """Follows calls of one module."""

    def __init__(self, module: Module, sinks: Sinks, run: Run) -> None:
        self._module = module
        self._sinks = sinks
        self._run = run
        self.evaluator = Evaluator(module, self)

    def __call__(self, node: ast.Call, dotted: str, scope: Scope) -> Value:
        args, named = self._arguments(node, scope)
        found = self._special(node, dotted, args, named, scope)
        if found is None:
            found = self._run(dotted, args, named, scope)
        if found is None:
            found = self._method(node, dotted, args, named, scope)
        self._sinks.call(node, dotted or _last(node), args, named)
        return found

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
            return made
        message = message_of(dotted or _last(node), args, named, node)
        if message is not None:
            self._sinks.written(message)
        return message

    def _source(self, node: ast.Call, dotted: str, args: list[Value]) -> Value | None:
        """Calls whose result changes."""
        name = dotted or _last(node)
        is_own = name in self._module.functions
        cause = None if is_own else sources.cause_of_call(name)
        if cause is None:
            return None
        formats = [arg.text for arg in args if arg.text is not None and "%" in arg.text]
        if cause is Cause.TIME and formats and not sources.CLOCK_CODES.search(formats[0]):
            cause = Cause.DAY
        suspect = self.evaluator.suspect(cause, node)
        if cause is Cause.ORDER and sources.is_listing(name):
            suspect = replace(suspect, fix=Fix(self._module.wrapped(node, "sorted(", ")")))
            if _is_here(node, args):
                here = self.evaluator.suspect(Cause.ENV, node)
                return unknown(node, self._module.code(node, 40), (suspect, here))
        return unknown(node, self._module.code(node, 40), (suspect,))

    def _method(
        self, node: ast.Call, dotted: str, args: list[Value], named: Mapping[str, Value], scope: Scope
    ) -> Value:
        """Methods of what is known, and functions that give back what they get."""
        made = (*args, *named.values())
        if isinstance(node.func, ast.Attribute):
            inner = self.evaluator.value(node.func.value, scope)
            known = self._of_text(node, inner, args, named)
            if known is not None:
                return known
            if node.func.attr in sources.CLEARING:
                return unknown(node, self._module.code(node, 40))
            from_arguments = made if node.func.attr in sources.METHODS_OF_ARGUMENTS else ()
            return self._passed(node, inner, from_arguments)
        if sources.passes_arguments(dotted):
            single = args[0] if len(args) == 1 and not named else None
            is_text = (
                single is not None and single.text is not None and dotted.rsplit(".", 1)[-1] in _SAME_TEXT
            )
            return (
                single if is_text and single is not None else self._passed(node, unknown(node, dotted), made)
            )
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
            suspects = [replace(s, cause=Cause.DAY) if s.cause is Cause.TIME else s for s in suspects]
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
        has_rest = any(keyword.arg is None for keyword in node.keywords)
        sorts = named.get("sort_keys")
        options = named.get("option")
        is_sorted = (sorts is not None and sorts.scalar is not False) or has_rest or options is not None
        if _is_written_out(value) and not inner:
            return Value(node, text=json.dumps(_plain(value)))
        if is_sorted or _is_written_out(value):
            return made
        suspect = self.evaluator.suspect(Cause.JSON, node)
        if sorts is None and self._module.dotted(node.func) in ("json.dumps", "simplejson.dumps"):
            suspect = replace(suspect, fix=self._with_sorted_keys(node))
        return made.with_suspects((suspect,))

    def _with_sorted_keys(self, node: ast.Call) -> Fix:
        start, end = self._module.span(node)
        inside = self._module.text[start : end - 1].rstrip()
        before = " sort_keys=True" if inside.endswith(",") else ", sort_keys=True"
        edit = self._module.wrapped(node, "", before)[1]
        at = start + len(inside)
        return Fix((replace(edit, start=at, end=at),))


def _sorted(node: ast.AST, value: Value) -> Value:
    return replace(value, node=node, suspects=tuple(s for s in value.suspects if s.cause is not Cause.ORDER))


def _is_written_out(value: Value, depth: int = 0) -> bool:
    """Whether all keys stand in the program, so that their order is always the same."""
    if depth > 10 or value.is_open:
        return depth > 10
    if value.members is not None or value.items is not None:
        return all(_is_written_out(child, depth + 1) for child in children(value))
    return value.text is not None or not value.is_unknown


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
