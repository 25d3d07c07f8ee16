"""Moments on a command line: days, and days with a time, in UTC unless they say otherwise."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import typer

_FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]


def since_option(panel: str | None = None) -> Any:
    """`--since`, a `datetime` or None."""
    text = "From then on; UTC unless it says so."
    return typer.Option("--since", formats=_FORMATS, help=text, rich_help_panel=panel)


def until_option(panel: str | None = None) -> Any:
    """`--until`, a `datetime` or None."""
    return typer.Option("--until", formats=_FORMATS, help="Before then.", rich_help_panel=panel)


def unix_seconds(moment: datetime | None) -> float | None:
    """Seconds since 1970; None stays None."""
    if moment is None:
        return None
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
