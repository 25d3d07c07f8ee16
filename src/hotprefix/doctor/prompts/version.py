"""One version of a prompt: a file, and what the registry says of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

SUFFIXES = (".txt", ".md", ".jinja", ".json")
"""What the files of versions end with."""

NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,63}", re.ASCII)
"""Names of prompts, as the server takes them in its header `x-hotprefix-prompt`."""
VERSION = re.compile(r"[A-Za-z0-9][\w.-]{0,31}", re.ASCII)
"""Names of versions."""


class Status(StrEnum):
    """A draft may still change; what is released is pinned; what is retired is pinned and no longer sent."""

    DRAFT = "draft"
    RELEASED = "released"
    RETIRED = "retired"


@dataclass(frozen=True, slots=True)
class Version:
    """`digest` is the one that was pinned, None for a draft. `reviewed`: when somebody last read it."""

    prompt: str
    name: str
    file: Path
    status: Status
    digest: str | None = None
    reviewed: date | None = None

    @property
    def label(self) -> str:
        """`name@version`, as the header `x-hotprefix-prompt` and the ledger have it."""
        return f"{self.prompt}@{self.name}"


def digest_of(data: bytes) -> str:
    """SHA-256 as `sha256:` and 64 hexadecimal digits; `sha256sum` shows the same."""
    return f"sha256:{sha256(data).hexdigest()}"
