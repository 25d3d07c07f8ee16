"""Where the values of a JSON or YAML text stand in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from json import decoder

import yaml

_scan: Callable[[str, int, bool], tuple[str, int]] = getattr(decoder, "scanstring")  # noqa: B009 - not in the stubs
_BLANK = re.compile("[ \t\n\r\ufeff]*")  # a byte order mark is none of the values
_SCALAR = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|NaN|-?Infinity")
_INDEX = re.compile(r"\[(\d+)\]\.?")
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)|.", re.DOTALL
)


class NotJson(ValueError):
    """A text is no JSON."""


@dataclass(slots=True)
class Member:
    """A key of an object and where it starts."""

    key: str
    start: int
    value: SpanNode


@dataclass(slots=True)
class SpanNode:
    """A value from `start` to `end`. `text` is what a string says; `is_block`: YAML written without brackets.

    `style` is a scalar's in YAML: a quote, `|`, `>`, or nothing.
    """

    start: int
    end: int
    members: list[Member] = field(default_factory=list)
    items: list[SpanNode] = field(default_factory=list)
    text: str | None = None
    style: str = '"'
    is_block: bool = False

    def member(self, key: str) -> Member | None:
        """The member called `key`; the last one, as JSON readers take it."""
        return next((member for member in reversed(self.members) if member.key == key), None)


def json_spans(text: str, at: int = 0) -> SpanNode:
    """The JSON value at or behind `at`. Raises `NotJson`."""
    return _JsonReader(text).value(_skip(text, at))


def yaml_spans(text: str) -> Iterator[SpanNode]:
    """The documents of a YAML text. Raises `yaml.YAMLError`."""
    for node in yaml.compose_all(text, yaml.SafeLoader):
        if node is not None:
            yield _yaml_node(node, text, 0)


def find(node: SpanNode, path: str) -> SpanNode | None:
    """The value at a JSON path below a node: `messages[0].content`. Keys may have dots in them."""
    if not path:
        return node
    index = _INDEX.match(path)
    if index:
        number = int(index[1])
        return find(node.items[number], path[index.end() :]) if number < len(node.items) else None
    for member in node.members:
        if path == member.key:
            return member.value
        if path.startswith((f"{member.key}.", f"{member.key}[")):
            rest = path[len(member.key) :]
            found = find(member.value, rest.removeprefix("."))
            if found is not None:
                return found
    return None


def index_in(node: SpanNode, source: str, offset: int) -> int:
    """Where in `source` the character `offset` of a string's text stands."""
    if node.text is None or offset <= 0:
        return node.start
    if node.style == '"':
        at = node.start + 1
        for match in _ESCAPE.finditer(source, at, node.end - 1):
            if offset == 0:
                return match.start()
            offset -= 1
        return node.end - 1
    snippet = node.text[offset : offset + 24].split("\n", 1)[0]
    found = source.find(snippet, node.start, node.end) if snippet else -1
    return found if found >= 0 else node.start


class _JsonReader:
    def __init__(self, text: str) -> None:
        self._text = text

    def value(self, at: int) -> SpanNode:
        text = self._text
        first = text[at : at + 1]
        if first == "{":
            return self._object(at)
        if first == "[":
            return self._array(at)
        if first == '"':
            said, end = self._string(at)
            return SpanNode(at, end, text=said)
        scalar = _SCALAR.match(text, at)
        if scalar is None:
            raise NotJson(at)
        return SpanNode(at, scalar.end(), style="")

    def _object(self, at: int) -> SpanNode:
        node = SpanNode(at, at)
        here = _skip(self._text, at + 1)
        while self._text[here : here + 1] != "}":
            if node.members:
                here = self._expect(here, ",")
            key, end = self._string(here)
            value = self.value(self._expect(_skip(self._text, end), ":"))
            node.members.append(Member(key, here, value))
            here = _skip(self._text, value.end)
        node.end = here + 1
        return node

    def _array(self, at: int) -> SpanNode:
        node = SpanNode(at, at)
        here = _skip(self._text, at + 1)
        while self._text[here : here + 1] != "]":
            if node.items:
                here = self._expect(here, ",")
            node.items.append(self.value(here))
            here = _skip(self._text, node.items[-1].end)
        node.end = here + 1
        return node

    def _string(self, at: int) -> tuple[str, int]:
        if self._text[at : at + 1] != '"':
            raise NotJson(at)
        said, end = _scan(self._text, at + 1, False)
        return str(said), int(end)

    def _expect(self, at: int, mark: str) -> int:
        if self._text[at : at + 1] != mark:
            raise NotJson(at)
        return _skip(self._text, at + 1)


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _yaml_node(node: yaml.Node, text: str, depth: int) -> SpanNode:
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.ScalarNode):
        is_text = node.tag == "tag:yaml.org,2002:str"
        return SpanNode(start, end, text=node.value if is_text else None, style=node.style or "")
    made = SpanNode(start, len(text[:end].rstrip()), is_block=not getattr(node, "flow_style", False))
    if depth > 200:
        return made
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = _yaml_node(value, text, depth + 1)
            made.members.append(Member(str(key.value), key.start_mark.index, inner))
    elif isinstance(node, yaml.SequenceNode):
        made.items = [_yaml_node(item, text, depth + 1) for item in node.value]
    return made
