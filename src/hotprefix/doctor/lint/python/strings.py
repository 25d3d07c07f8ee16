"""Texts that a program puts together: `format`, `%`, `Template`, `join`, `replace`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from hotprefix.doctor.lint.names import cause_of_name
from hotprefix.doctor.lint.python.value import Value, concatenated, joined, once_a_day, text_of, unknown
from hotprefix.doctor.lint.suspect import Suspect

_FIELD = re.compile(r"\{\{|\}\}|\{(?P<name>[^{}!:]*)(?:![rsa])?(?::(?P<spec>[^{}]*))?\}")
_PERCENT = re.compile(r"%%|%(?:\((?P<name>\w+)\))?[-+ #0]*(?:\d+|\*)?(?:\.\d+)?[sdrfixXeEgGca]")
_BRACES = re.compile(r"\{\{-?\s*(?P<name>[A-Za-z_]\w*)[^{}]*\}\}")
_DOLLAR = re.compile(r"\$\$|\$(?P<name>[A-Za-z_]\w*)|\$\{(?P<braced>[A-Za-z_]\w*)\}")

Fill = Callable[[re.Match[str]], Value | None]


def formatted(node: ast.AST, template: Value, args: Sequence[Value], named: Mapping[str, Value]) -> Value:
    """`template.format(*args, **named)`."""
    count = 0

    def fill(match: re.Match[str]) -> Value | None:
        nonlocal count
        name = match["name"]
        if name is None:
            return Value(text=match.group()[0])
        key = re.split(r"[.\[]", name)[0]
        if not key:
            count += 1
            return args[count - 1] if count <= len(args) else None
        if key.isdigit():
            return args[int(key)] if int(key) < len(args) else None
        return named.get(key)

    return _filled(node, template, _FIELD, fill)


def named_holes(text: Value, line: int, column: int) -> Value:
    """A template that is filled in elsewhere: its `{names}` say what with."""

    def fill(match: re.Match[str]) -> Value | None:
        if match["name"] is None:
            return Value(text=match.group()[0])
        cause = cause_of_name(match["name"])
        found = [Suspect(cause, 0, 0, match.group(), line, column)] if cause is not None else []
        return unknown(None, match["name"], found)

    return _filled(text.node or ast.Constant(value=None), text, _FIELD, fill)


def percent(node: ast.AST, template: Value, right: Value) -> Value:
    """`template % right`."""
    args = right.items if right.items is not None else [right]
    named = right.members or {}
    count = 0

    def fill(match: re.Match[str]) -> Value | None:
        nonlocal count
        if match.group() == "%%":
            return Value(text="%")
        if match["name"]:
            return named.get(match["name"])
        count += 1
        return args[count - 1] if count <= len(args) else None

    return _filled(node, template, _PERCENT, fill)


def substituted(node: ast.AST, template: Value, named: Mapping[str, Value]) -> Value:
    """`string.Template(template).substitute(**named)`."""

    def fill(match: re.Match[str]) -> Value | None:
        if match.group() == "$$":
            return Value(text="$")
        return named.get(match["name"] or match["braced"])

    return _filled(node, template, _DOLLAR, fill)


def rendered(node: ast.AST, template: Value, named: Mapping[str, Value]) -> Value:
    """`jinja2.Template(template).render(**named)`, as far as single variables go."""
    return _filled(node, template, _BRACES, lambda match: named.get(match["name"]))


def replaced(node: ast.AST, text: Value, old: Value, new: Value) -> Value:
    """`text.replace(old, new)`."""
    if not old.text:
        return replace(text, suspects=joined(text.suspects, text_of(new)[1]))
    return _filled(node, text, re.compile(re.escape(old.text)), lambda match: new)


def joined_by(node: ast.AST, separator: Value, parts: Value) -> Value:
    """`separator.join(parts)`; what is unordered about the parts is so about the text."""
    pieces: list[Value] = []
    for item in parts.items or ():
        if pieces and separator.text:
            pieces.append(separator)
        pieces.append(item)
    if not pieces:
        pieces.append(replace(parts, node=node))
    made = concatenated(node, pieces)
    end = len(made.text or "")
    spread = tuple(replace(suspect, start=0, end=end) for suspect in parts.suspects)
    return replace(made, suspects=joined(made.suspects, spread))


def shown_with(spec: str, value: Value) -> Value:
    """A moment written with a format: without hours it only changes once a day."""
    if "%" not in spec or re.search(r"%-?[HIMSfpcXTRrs]", spec):
        return value
    return replace(value, suspects=once_a_day(value.suspects))


def _filled(node: ast.AST, template: Value, pattern: re.Pattern[str], fill: Fill) -> Value:
    text, suspects = text_of(template)
    pieces: list[Value] = []
    at = 0
    for match in pattern.finditer(text):
        pieces.append(_slice(template, text, suspects, at, match.start()))
        filler = fill(match)
        if filler is not None:
            spec = match.groupdict().get("spec")
            pieces.append(shown_with(spec, filler) if spec else filler)
        else:
            pieces.append(_slice(template, text, suspects, match.start(), match.end()))
        at = match.end()
    pieces.append(_slice(template, text, suspects, at, len(text)))
    return concatenated(node, pieces)


def _slice(template: Value, text: str, suspects: Sequence[object], start: int, end: int) -> Value:
    inside = tuple(s.moved(-start) for s in template.suspects if start <= s.start < max(end, start + 1))
    return Value(template.node, text=text[start:end], suspects=inside if template.text is not None else ())
