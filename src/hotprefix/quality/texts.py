"""Texts that come with Python itself: no network, the same on every machine with that version."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Sequence
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from hotprefix.base.errors import InvalidRequest
from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.tokenizer import Tokenizer

_MODULES = ("argparse", "typing", "inspect", "statistics", "tarfile", "pathlib", "subprocess", "doctest")


class Part(Enum):
    """What is learned from is never measured with: each text is cut in two halves."""

    LEARNED = 0
    MEASURED = 1


class Text(NamedTuple):
    """A long text of one kind."""

    domain: str
    text: str

    def half(self, part: Part) -> str:
        """The first half for learning, the second for measuring."""
        middle = len(self.text) // 2
        return self.text[:middle] if part is Part.LEARNED else self.text[middle:]


class Document(NamedTuple):
    """Consecutive tokens of a text."""

    domain: str
    tokens: list[int]


def own_texts() -> list[Text]:
    """The language reference behind Python's `help()`, and source code of its library."""
    return [Text("reference", _reference()), Text("source", _sources())]


def texts_of(paths: Sequence[Path]) -> list[Text]:
    """Files of the user, each a domain. Raises `OSError`, and `InvalidRequest` if one is no UTF-8."""
    texts = []
    for path in paths:
        try:
            texts.append(Text(path.name, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError as error:
            raise InvalidRequest(
                f"{path} is no text in UTF-8: {error.reason} at byte {error.start}."
            ) from error
    return texts


class Library:
    """Cuts texts into documents for a model."""

    def __init__(self, texts: Sequence[Text], tokenizer: Tokenizer, manifest: ModelManifest) -> None:
        self._texts = texts
        self._tokenizer = tokenizer
        self._name, self._context = manifest.name, manifest.context_length
        self._head = [manifest.bos_id] if manifest.add_bos and manifest.bos_id is not None else []

    def documents(self, part: Part, count: int, length: int) -> list[Document]:
        """`count` documents of `length` tokens that don't overlap, from all domains in turn, spread evenly.

        Raises `InvalidRequest` if the texts, or the model's context, are too short for that.
        """
        self.require_context(length)
        shares = [len(range(place, count, len(self._texts))) for place in range(len(self._texts))]
        cut = [
            self._cut(text, part, share, length)
            for text, share in zip(self._texts, shares, strict=True)
            if share
        ]
        return list(islice(_in_turn(cut), count))

    def require_context(self, tokens: int) -> None:
        """Raises `InvalidRequest` where positions would pass what the model was made for."""
        if tokens > self._context:
            raise InvalidRequest(
                f"{self._name} has a context of {self._context:,} tokens, and texts of {tokens:,} are "
                "wanted: take shorter ones."
            )

    def _cut(self, text: Text, part: Part, count: int, length: int) -> list[Document]:
        tokens = self._tokenizer.encode(text.half(part))
        body = length - len(self._head)
        if len(tokens) < count * body:
            raise InvalidRequest(
                f"half of the text '{text.domain}' has {len(tokens):,} tokens, and {count} documents of "
                f"{body:,} are wanted: ask for fewer or shorter ones, or give a longer text."
            )
        step = len(tokens) // count
        starts = range(0, count * step, step)
        return [Document(text.domain, self._head + tokens[start : start + body]) for start in starts]


def _in_turn(groups: Sequence[Sequence[Document]]) -> Iterator[Document]:
    for place in range(max(map(len, groups), default=0)):
        yield from (group[place] for group in groups if place < len(group))


def _reference() -> str:
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


def _sources() -> str:
    return "\n\n".join(_source(name) for name in _MODULES)


def _source(module: str) -> str:
    spec = importlib.util.find_spec(module)
    path = Path(spec.origin) if spec is not None and spec.origin is not None else None
    if path is not None and path.name == "__init__.py":
        # Some modules have become packages; their text lies in several files.
        return "\n\n".join(file.read_text(encoding="utf-8") for file in sorted(path.parent.glob("*.py")))
    return "" if path is None or path.suffix != ".py" else path.read_text(encoding="utf-8")
