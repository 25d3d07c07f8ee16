"""Files of a revision → the requests that they stand for."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import jinja2
from jinja2.sandbox import SandboxedEnvironment

from hotprefix.base.errors import HotprefixError
from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.gate.contexts import Context
from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import UnreadableFile, read_documents, recorded_of
from hotprefix.doctor.recorded import Recorded

_DATA = (".json", ".jsonl", ".ndjson", ".yaml", ".yml", ".log")
_LINES = (".jsonl", ".ndjson", ".log")
_TEXT = (".txt", ".md", ".prompt")
_TEMPLATES = (".j2", ".jinja", ".jinja2")
_QUESTIONS = ("Request 1", "Request 2")
_MAY_BE_REQUESTS = re.compile(rb"\b(?:messages|input)\b")
_RUN_ERRORS = (TypeError, ValueError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError)

Load = Callable[[str], bytes | None]
"""Bytes of a file by its path from the root of the repository."""


class UnrenderableTemplate(HotprefixError):
    """A template of prompts can't be rendered with the contexts given; the message names file and line."""


class Sources:
    """Reads the files of one revision; `load` gives their bytes.

    Data files hold requests; a file with one request counts as sent twice, so that what a repeated prompt may
    reuse can be seen at all. Texts and templates are system prompts, sent once for each context and at least
    twice, with a user's message behind them: the context's `user`, or a plain one. A template of a data file
    (`chat.json.j2`) renders to requests.
    """

    def __init__(self, load: Load, contexts: Sequence[Context], model: str) -> None:
        self._load = load
        self._contexts = contexts
        self._model = model
        self._environment = _Environment(
            load,
            loader=jinja2.FunctionLoader(self._included),
            undefined=jinja2.StrictUndefined,
            keep_trailing_newline=True,
        )

    def requests(self, path: str) -> list[Recorded]:
        """Those of a file, none if it is of another kind. Raises `UnreadableFile`, `UnrenderableTemplate`."""
        data = self._load(path)
        suffix = PurePosixPath(path).suffix.lower()
        if data is None or not is_prompt_file(path):
            return []
        if suffix in _DATA:
            return _twice(_data(data, path))
        text = _decoded(data, path)
        if suffix in _TEXT:
            return self._prompts(path, lambda context: text)
        return self._template(path)

    def _template(self, path: str) -> list[Recorded]:
        inner = PurePosixPath(path).with_suffix("").suffix.lower()
        try:
            template = self._environment.get_template(path)
        except jinja2.TemplateSyntaxError as error:
            raise UnrenderableTemplate(f"{path}:{error.lineno} is no Jinja: {error.message}.") from error
        if inner not in _DATA:
            return self._prompts(path, lambda context: self._rendered(template, context, path))
        found: list[Recorded] = []
        for context in self._contexts or ({},):
            found += _data(
                self._rendered(template, context, path).encode(), str(PurePosixPath(path).with_suffix(""))
            )
        return _twice([replace(one, place=Place(path, one.place.line)) for one in found])

    def _prompts(self, path: str, text_of: Callable[[Context], str]) -> list[Recorded]:
        contexts = list(self._contexts) or [{}]
        if len(contexts) == 1:
            contexts *= 2
        found = []
        for number, context in enumerate(contexts):
            question = context.get(
                "user", _QUESTIONS[number % 2] if len(contexts) == 2 else f"Request {number + 1}"
            )
            body = {
                "model": self._model,
                "messages": [
                    {"role": "system", "content": text_of(context)},
                    {"role": "user", "content": str(question)},
                ],
            }
            found.append(Recorded(Dialect.CHAT, body, Place(path, 1)))
        return found

    def _rendered(self, template: jinja2.Template, context: Context, path: str) -> str:
        try:
            return template.render(context)
        except jinja2.UndefinedError as error:
            raise UnrenderableTemplate(
                f"{path}: {error.message}. Give its value with --context FILE, an object for each request."
            ) from error
        except jinja2.TemplateNotFound as error:
            raise UnrenderableTemplate(
                f"{path} includes {error.name}, which is not in this revision."
            ) from error
        except (jinja2.TemplateError, *_RUN_ERRORS) as error:
            raise UnrenderableTemplate(f"{path} can't be rendered: {error}") from error

    def _included(self, name: str) -> str | None:
        data = self._load(name)
        return None if data is None else _decoded(data, name)


class _Environment(SandboxedEnvironment):
    """Finds what a template includes, whatever folder the program begins at that renders it: beside the
    template, or below a folder above it."""

    def __init__(self, load: Load, **options: Any) -> None:
        super().__init__(**options)
        self._load = load

    def join_path(self, template: str, parent: str) -> str:
        places = (str(folder / template) for folder in PurePosixPath(parent).parents)
        return next((place for place in places if self._load(place) is not None), template)


def is_prompt_file(path: str) -> bool:
    """Whether a file may hold requests or a prompt, by its name."""
    return PurePosixPath(path).suffix.lower() in (*_DATA, *_TEXT, *_TEMPLATES)


def holds_lines(path: str) -> bool:
    """Whether each line of a file is a request."""
    return PurePosixPath(path).suffix.lower() in _LINES


def _data(data: bytes, path: str) -> list[Recorded]:
    """Requests in a data file; none if it holds other data."""
    if not _MAY_BE_REQUESTS.search(data):
        return []  # some other program's, in whatever form
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / PurePosixPath(path).name
        copy.write_bytes(data)
        try:
            found = (recorded_of(document, Place(path, line)) for line, document in read_documents(copy))
            return [recorded for recorded in found if recorded is not None]
        except UnreadableFile as error:
            raise UnreadableFile(str(error).replace(str(copy), path)) from error


def _twice(requests: list[Recorded]) -> list[Recorded]:
    return requests * 2 if len(requests) == 1 else requests


def _decoded(data: bytes, path: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} is no UTF-8 text: byte {error.start} is wrong.") from error
