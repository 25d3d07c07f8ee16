"""Prompt templates in Jinja: the text, with what is filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import jinja2
import jinja2.ext
import jinja2.parser
from jinja2 import nodes

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.names import cause_of_name
from hotprefix.doctor.lint.request import LintRequest, Origin, Source
from hotprefix.doctor.lint.source_table import causes
from hotprefix.doctor.lint.suspect import Cause, Suspect, TracedText
from hotprefix.doctor.lint.unfold import unfold
from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import UnreadableFile
from hotprefix.doctor.recorded import Recorded

JINJA_SUFFIXES = (".j2", ".jinja", ".jinja2")

_DEEPEST = 5
_MOST_FOLDERS = 4
_CLOCK_CODES = re.compile(r"%[HIMSfpcXTRrs]")
_FOR_THE_USER = re.compile(r"(?:^|[-_.])(?:user|human|question|query)(?:[-_.]|$)", re.IGNORECASE)


class _Generation(jinja2.ext.Extension):
    """`{% generation %}` of chat templates, of which only the body counts."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: jinja2.parser.Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def read_jinja(path: Path) -> Iterator[LintRequest]:
    """A template as a system prompt, or as a user's message if its name says so. Raises `UnreadableFile`."""
    try:
        tree, text = _parsed(path)
    except jinja2.TemplateSyntaxError as error:
        raise UnreadableFile(f"{path}:{error.lineno} is no Jinja: {error.message}") from error
    except OSError as error:
        raise UnreadableFile(f"{path} can't be read: {error.strerror or error}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise UnreadableFile(f"{path} can't be read as a template: {error}") from error
    role = "user" if _FOR_THE_USER.search(path.stem) else "system"
    message = {"role": role, "content": _Reader(text, path).read(tree)}
    place = Place(str(path), 1)
    recorded = Recorded(Dialect.CHAT, {"messages": [message, {"role": "user", "content": "…"}]}, place)
    request = unfold(recorded, Origin.TEMPLATE, Source(place), tools_first=False)
    yield replace(request, newest=0) if role == "user" else request


def _parsed(path: Path) -> tuple[nodes.Template, str]:
    text = path.read_text(encoding="utf-8")
    environment = jinja2.Environment(
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols", "jinja2.ext.i18n", _Generation]
    )
    return environment.parse(text), text


class _Reader:
    """Follows a template from top to bottom, through both branches, once through each loop, and into what it
    includes: that is looked for beside it and below the folders above it. `depth` counts templates."""

    def __init__(self, source: str, path: Path, depth: int = 0) -> None:
        self._path = path
        self._depth = depth
        self._lines = re.split(r"\r\n|\r|\n", source)
        self._text = ""
        self._suspects: list[Suspect] = []
        self._set: dict[str, nodes.Node] = {}

    def read(self, tree: nodes.Template) -> TracedText:
        for node in tree.body:
            self._node(node)
        return TracedText(self._text, self._suspects)

    def _node(self, node: nodes.Node) -> None:
        match node:
            case nodes.Output():
                for part in node.nodes:
                    self._output(part)
            case nodes.Assign(target=nodes.Name(name=name), node=value):
                self._set[name] = value
            case nodes.Include(template=nodes.Const(value=str(name))):
                self._include(name)
            case nodes.Macro() | nodes.Import() | nodes.FromImport():
                return
            case nodes.If():
                for inner in (*node.body, *node.elif_, *node.else_):
                    self._node(inner)
            case nodes.For():
                self._loop(node)
            case _:
                for child in node.iter_child_nodes(exclude=("test", "iter", "target")):
                    self._node(child)

    def _include(self, name: str) -> None:
        places = (folder / name for folder in list(self._path.parents)[:_MOST_FOLDERS])
        found = next((place for place in places if place.is_file()), None)
        if found is None or self._depth >= _DEEPEST:
            return
        try:
            tree, source = _parsed(found)
        except (jinja2.TemplateError, OSError, UnicodeDecodeError, RecursionError):
            return  # which is told of that file
        inner = _Reader(source, found, self._depth + 1).read(tree)
        start = len(self._text)
        self._suspects += (replace(s.moved(start), file=s.file or str(found)) for s in inner.suspects)
        self._text += inner

    def _loop(self, node: nodes.For) -> None:
        start = len(self._text)
        for inner in (*node.body, *node.else_):
            self._node(inner)
        if self._cause(node.iter, 0) is Cause.ORDER and len(self._text) > start:
            shown = _code(node.iter)
            place = node.lineno, self._column(node.lineno, shown)
            self._suspects.append(Suspect(Cause.ORDER, start, len(self._text), shown, *place))

    def _output(self, node: nodes.Node) -> None:
        if isinstance(node, nodes.TemplateData):
            self._text += node.data
            return
        if isinstance(node, nodes.Const):
            self._text += str(node.value)
            return
        found = self._cause(node, 0)
        shown = _code(node)
        start = len(self._text)
        self._text += f"{{{shown}}}"
        if found is not None:
            column = self._column(node.lineno, shown)
            self._suspects.append(
                Suspect(found, start, len(self._text), f"{{{{ {shown} }}}}", node.lineno, column)
            )

    def _cause(self, node: nodes.Node, depth: int) -> Cause | None:
        """Why an expression changes, if it does; through `set` variables and filters."""
        if depth > 8:
            return None
        match node:
            case nodes.Name(name=name):
                known = self._set.get(name)
                return self._cause(known, depth + 1) if known is not None else cause_of_name(name)
            case nodes.Getattr():
                return cause_of_name(_code(node)) or self._cause(node.node, depth + 1)
            case nodes.Call():
                return self._called(node, depth)
            case nodes.Filter(name=name) if name in causes("filters"):
                return causes("filters")[name]
            case nodes.Const():
                return None
        found = (self._cause(child, depth + 1) for child in node.iter_child_nodes())
        return next((cause for cause in found if cause is not None), None)

    def _called(self, node: nodes.Call, depth: int) -> Cause | None:
        name = _code(node.node).rsplit(".", 1)[-1]
        cause = causes("templates").get(name) or self._cause(node.node, depth + 1)
        formats = [
            arg.value for arg in node.args if isinstance(arg, nodes.Const) and isinstance(arg.value, str)
        ]
        if cause is Cause.TIME and formats and "%" in formats[0] and not _CLOCK_CODES.search(formats[0]):
            return Cause.DAY
        return cause

    def _column(self, line: int, shown: str) -> int:
        """Where an expression stands on its line, by its first word."""
        if not 0 < line <= len(self._lines):
            return 0
        word = re.split(r"\W", shown, maxsplit=1)[0]
        return self._lines[line - 1].find(word) + 1


def _code(node: nodes.Node) -> str:
    """An expression in short."""
    match node:
        case nodes.Name(name=name):
            return str(name)
        case nodes.Getattr(node=inner, attr=attr):
            return f"{_code(inner)}.{attr}"
        case nodes.Getitem(node=inner, arg=nodes.Const(value=value)):
            return f"{_code(inner)}[{value!r}]"
        case nodes.Call(node=inner):
            return f"{_code(inner)}(…)" if node.args or node.kwargs else f"{_code(inner)}()"
        case nodes.Filter(node=inner, name=name) if inner is not None:
            return f"{_code(inner)}|{name}"
    return type(node).__name__.lower()
