"""Files that say what to warm: JSON, JSON lines, YAML or plain text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hotprefix.base.errors import HotprefixError

_CACHE_PATH = "/v1/caches"
_CHAT_PATH = "/v1/chat/completions"
_KEPT = ("model", "messages", "tools", "chat_template_kwargs", "enable_thinking", "session_id")
"""Fields of a chat request that decide its prompt."""


class BadWarmFile(HotprefixError):
    """A file of prefixes can't be read, or an entry in it is no prefix."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """One request that warms: `label` says for people what it is."""

    label: str
    path: str
    body: dict[str, Any]


def read_warm_files(paths: Sequence[Path]) -> list[Prefix]:
    """All prefixes in order. Raises `BadWarmFile`, which names file and entry."""
    return [prefix for path in paths for prefix in _read(path)]


def _read(path: Path) -> Iterator[Prefix]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8"
        raise BadWarmFile(f"{path} can't be read: {reason}.") from None
    entries = list(_entries(path, text))
    if not entries:
        raise BadWarmFile(f"{path} has no prefix in it.")
    for number, entry in enumerate(entries, 1):
        place = f"{path.name}:{number}" if len(entries) > 1 else path.name
        yield _prefix(entry, place)


def _entries(path: Path, text: str) -> Iterator[Any]:
    kind = path.suffix.lower()
    try:
        if kind in (".jsonl", ".ndjson"):
            # Other line ends than these may stand within a text.
            yield from (json.loads(line) for line in text.split("\n") if line.strip())
        elif kind == ".json":
            yield from _listed(json.loads(text))
        elif kind in (".yaml", ".yml"):
            for document in yaml.safe_load_all(text):
                yield from _listed(document)
        elif text.strip():
            yield {"messages": [{"role": "system", "content": text}]}
    except json.JSONDecodeError as error:
        raise BadWarmFile(f"{path} is no valid JSON: {error}.") from None
    except yaml.YAMLError as error:
        raise BadWarmFile(f"{path} is no valid YAML: {' '.join(str(error).split())}.") from None
    except RecursionError:
        raise BadWarmFile(f"{path} is nested too deeply.") from None


def _listed(document: Any) -> list[Any]:
    return document if isinstance(document, list) else [] if document is None else [document]


def _prefix(entry: Any, place: str) -> Prefix:
    if not isinstance(entry, dict):
        raise BadWarmFile(f"{place}: an entry is an object with 'messages', or with a 'name' and a 'text'.")
    _require_json(entry, place)
    if "name" in entry:
        if ("messages" in entry) == ("text" in entry):
            raise BadWarmFile(f"{place}: a named cache has either 'messages' or 'text'.")
        return Prefix(f"{place} ({entry['name']})", _CACHE_PATH, dict(entry))
    if not isinstance(entry.get("messages"), list):
        raise BadWarmFile(f"{place}: 'messages' are missing; a 'text' needs a 'name' beside it.")
    body = {key: entry[key] for key in _KEPT if key in entry}
    if entry.get("tool_choice") == "none":
        body["tool_choice"] = "none"  # which hides the tools from the prompt
    return Prefix(place, _CHAT_PATH, body | {"max_tokens": 1, "temperature": 0})


def _require_json(entry: dict[str, Any], place: str) -> None:
    """Raise `BadWarmFile` for what can't be sent: YAML has dates, and JSON files may have `NaN`."""
    try:
        json.dumps(entry, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise BadWarmFile(
            f"{place}: this can't be sent as JSON: {error}. In YAML, put dates and times in quotes."
        ) from None
