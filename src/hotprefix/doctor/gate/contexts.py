"""Values that templates of prompts are rendered with."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotprefix.doctor.reading import UnreadableFile, read_documents

Context = Mapping[str, Any]


def read_contexts(path: Path) -> tuple[Context, ...]:
    """JSON, JSONL or YAML: an object for each request, or an array of them. Raises `UnreadableFile`."""
    contexts: list[Context] = []
    for line, document in read_documents(path):
        for one in document if isinstance(document, list) else [document]:
            if not isinstance(one, Mapping):
                raise UnreadableFile(f"{path}:{line}: a context is an object of names and values.")
            contexts.append(one)
    if not contexts:
        raise UnreadableFile(f"{path} has no context in it.")
    return tuple(contexts)
