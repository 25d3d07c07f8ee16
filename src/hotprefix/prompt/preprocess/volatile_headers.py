"""Volatile headers: lines at the top of a system message that clients are known to change every time."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from hotprefix.base.errors import LogicError
from hotprefix.prompt.preprocess.draft import Draft
from hotprefix.prompt.preprocess.edit import Change, Edit, applied
from hotprefix.prompt.preprocess.step import as_edits

_FILE = "volatile_headers.toml"
_BLANK_LINES = re.compile(r"(?:[ \t]*\n)*")
_LINE_END = re.compile(r"[ \t]*(?:\n|\Z)")
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True)
class HeaderPattern:
    """A line that is known: where from, what it looks like, and what it is recognised by.

    With `keeps_rest` only the known part is taken off a line that goes on; else such a line stays.
    """

    name: str
    regex: re.Pattern[str]
    examples: tuple[str, ...]
    sources: tuple[str, ...]
    keeps_rest: bool = False


def load_header_patterns() -> tuple[HeaderPattern, ...]:
    """The patterns that ship with Hotprefix."""
    file = resources.files("hotprefix.prompt.preprocess") / "data" / _FILE
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    stamp = str(document["stamp"])
    return tuple(_pattern(entry, stamp) for entry in document["pattern"])


class VolatileHeaders:
    """Takes known lines off the top of system messages, and stops at the first that is not known.

    A line goes by its label, never by its shape: a constant id in hexadecimal stays.
    """

    name = "volatile-headers"

    def __init__(self, patterns: Sequence[HeaderPattern]) -> None:
        self._patterns = tuple(patterns)

    def apply(self, draft: Draft) -> tuple[Draft, Sequence[Edit]]:
        texts: dict[str, str] = {}
        edits: list[Edit] = []
        for group in draft.blocks:
            for block in group:
                if block.role not in _SYSTEM:
                    break
                changes = list(self._changes(block.text))
                left = applied(block.text, changes)
                if changes:
                    texts[block.path] = left
                    edits += as_edits(self.name, block.path, changes)
                if left.strip():
                    break
        return (draft.with_texts(texts), edits) if edits else (draft, ())

    def _changes(self, text: str) -> Iterator[Change]:
        at = 0
        while True:
            blank = _BLANK_LINES.match(text, at)
            start = blank.end() if blank else at
            end = self._header_end(text, start)
            if end is None:
                return
            # Blank lines before a header go with it; those behind the last header stay.
            yield Change(at, text[at:end], "")
            at = end

    def _header_end(self, text: str, start: int) -> int | None:
        for pattern in self._patterns:
            found = pattern.regex.match(text, start)
            if found is None or found.end() == start:
                continue
            rest = _LINE_END.match(text, found.end())
            if rest is not None:
                return rest.end()
            if pattern.keeps_rest:
                return found.end()
        return None


def _pattern(entry: dict[str, Any], stamp: str) -> HeaderPattern:
    pattern = HeaderPattern(
        name=entry["name"],
        regex=re.compile(entry["regex"].replace("{stamp}", stamp), re.IGNORECASE | re.VERBOSE),
        examples=tuple(entry["examples"]),
        sources=tuple(entry["sources"]),
        keeps_rest=entry.get("keeps_rest", False),
    )
    if not pattern.sources or not pattern.examples:
        raise LogicError(f"the header pattern {pattern.name} needs an example and a source")
    return pattern
