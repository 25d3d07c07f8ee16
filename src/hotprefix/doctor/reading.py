"""Request files: JSON, JSONL and YAML, bare bodies or with what was recorded around them."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import yaml

from hotprefix.base.errors import HotprefixError
from hotprefix.doctor.dialect import dialect_of
from hotprefix.doctor.place import Place
from hotprefix.doctor.recorded import Recorded

_BODIES = ("request", "body", "request_body", "input_body", "kwargs")
_ANSWERS = ("response", "response_body", "output_body")
_TIMES = ("timestamp", "at", "time", "created_at", "start_time", "startTime")
_FIRST = ("ttft", "first_token", "time_to_first_token", "ttft_s")
_SESSIONS = ("session_id", "session", "conversation_id", "trace_id")
_SECONDS = re.compile(r"\d{9,}(?:\.\d+)?")
"""Seconds or milliseconds as text, which `fromisoformat` reads as days and hours of other centuries."""
_MOST_VALUES = 1_000_000
"""Values of one YAML document with its aliases written out: a few lines may stand for endless ones."""


class UnreadableFile(HotprefixError):
    """A file is no request file; the message names the line."""


def read_requests(path: Path) -> Iterator[Recorded]:
    """The requests in a file, one after the other, so that a log of any size can be read.

    Documents that are no request are skipped where others are; a file without any is refused.
    Raises `UnreadableFile`.
    """
    found = 0
    for line, document in read_documents(path):
        recorded = recorded_of(document, Place(str(path), line))
        if recorded is not None:
            found += 1
            yield recorded
    if not found:
        raise UnreadableFile(
            f"{path} has no request in it. Give JSON, JSONL or YAML with bodies for OpenAI Chat, OpenAI "
            "Responses, DashScope or Anthropic, bare or under 'request' or 'body'."
        )


def read_documents(path: Path) -> Iterator[tuple[int, Any]]:
    """Every JSON or YAML document of a file with the line it begins at."""
    try:
        if path.suffix.lower() in (".yaml", ".yml"):
            yield from _yaml(path)
        elif path.suffix.lower() in (".jsonl", ".ndjson", ".log"):
            yield from _lines(path)
        else:
            yield from _json(path)
    except OSError as error:
        raise UnreadableFile(f"{path} can't be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UnreadableFile(f"{path} is no UTF-8 text: byte {error.start} is wrong.") from error
    except RecursionError as error:
        raise UnreadableFile(f"{path} is nested too deeply.") from error


def recorded_of(document: Any, place: Place) -> Recorded | None:
    """A request with what stands around it; None if the document holds none."""
    if not isinstance(document, Mapping):
        return None
    body, around = _body(document)
    url = str(around.get("url") or around.get("path") or around.get("endpoint") or "")
    dialect = dialect_of(body, url)
    if dialect is None:
        return None
    headers = around.get("headers")
    return Recorded(
        dialect,
        body,
        place,
        response=_mapping(around, _ANSWERS),
        at=_time(_first_of(around, _TIMES)),
        first_token=_number(_first_of(around, _FIRST)),
        session=str(_first_of(around, _SESSIONS) or ""),
        headers={str(name).lower(): str(value) for name, value in headers.items()}
        if isinstance(headers, Mapping)
        else {},
    )


def _body(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    inner = _mapping(document, _BODIES)
    if inner is None:
        return document, {}
    deeper = _mapping(inner, ("body",))  # as the batch API and HTTP logs nest it
    if deeper is not None:
        return deeper, {**inner, **document}
    return inner, document


def _mapping(document: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any] | None:
    found = _first_of(document, names)
    if isinstance(found, str) and found[:1] == "{":
        try:
            found = orjson.loads(found)
        except orjson.JSONDecodeError:
            return None
    return found if isinstance(found, Mapping) else None


def _first_of(document: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((document[name] for name in names if document.get(name) is not None), None)


def _time(value: Any) -> float | None:
    try:
        if isinstance(value, str) and not _SECONDS.fullmatch(value):
            return datetime.fromisoformat(value).timestamp()
        if isinstance(value, datetime):  # as YAML has them, in UTC unless they say otherwise
            return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        pass
    found = _number(value)
    # Milliseconds since 1970 are a number that seconds reach in the year 5138.
    return found / 1000 if found is not None and found > 1e11 else found


def _number(value: Any) -> float | None:
    try:
        return float(value) if value is not None and not isinstance(value, bool) else None
    except (TypeError, ValueError):
        return None


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            line = raw.removeprefix(BOM_UTF8) if number == 1 else raw
            if not line.strip():
                continue
            try:
                yield number, orjson.loads(line)
            except orjson.JSONDecodeError as error:
                raise UnreadableFile(f"{path}:{number} is no JSON: {error}") from error


def _json(path: Path) -> Iterator[tuple[int, Any]]:
    text = path.read_text(encoding="utf-8-sig")
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        if "\n" in text.strip() and _is_line(text.lstrip().split("\n", 1)[0]):
            yield from _lines(path)  # JSONL under another name
            return
        raise UnreadableFile(f"{path}:{error.lineno}:{error.colno} is no JSON: {error.msg}") from error
    except ValueError as error:  # a number with thousands of digits
        raise UnreadableFile(f"{path} can't be read as JSON: {error}") from error
    if isinstance(document, list):
        yield from ((1, one) for one in document)
    else:
        yield 1, document


def _is_line(text: str) -> bool:
    try:
        return isinstance(orjson.loads(text), dict)
    except orjson.JSONDecodeError:
        return False


def _yaml(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open(encoding="utf-8") as stream:
        try:
            for node in yaml.compose_all(stream, yaml.SafeLoader):
                if node is not None:
                    yield node.start_mark.line + 1, _built(node)
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark is not None else 0
            raise UnreadableFile(f"{path}:{line} is no YAML: {error.problem}") from error
        except UnicodeDecodeError:
            raise
        except (yaml.YAMLError, ValueError) as error:  # a character, a date or a number that is none
            raise UnreadableFile(f"{path} is no YAML: {getattr(error, 'reason', error)}") from error


def _built(node: yaml.Node) -> Any:
    if _values(node, {}) > _MOST_VALUES:
        raise ValueError("its aliases contain themselves, or stand for too many values")
    loader = _Loader("")
    try:
        return loader.construct_document(node)
    finally:
        loader.dispose()


class _Loader(yaml.SafeLoader):
    """What other programs' tags stand for is not known here; their values are taken as they are written."""


def _tagged(loader: yaml.SafeLoader, tag: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return loader.construct_mapping(node, deep=True)
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return f"{node.tag} {node.value}".strip()


_Loader.add_multi_constructor(None, _tagged)


def _values(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node has with its aliases written out; more than all that are allowed if endless."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    found = known.get(id(node))
    if found is None:
        known[id(node)] = _MOST_VALUES + 1  # should it come again below itself
        inner = (part for item in node.value for part in (item if isinstance(item, tuple) else (item,)))
        found = known[id(node)] = 1 + sum(_values(part, known) for part in inner)
    return found
