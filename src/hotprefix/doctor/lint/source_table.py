"""`sources.toml`: where programs and templates get what changes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from hotprefix.doctor.lint.suspect import Cause


@cache
def source_table() -> Mapping[str, Any]:
    """The file as it is."""
    text = (resources.files("hotprefix.doctor.lint") / "sources.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def causes(table: str) -> Mapping[str, Cause]:
    """One of its tables turned around: names and their causes."""
    return {name: Cause(cause) for cause, names in source_table()[table].items() for name in names}
