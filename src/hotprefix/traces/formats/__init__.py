"""Trace formats, told apart by how a file begins."""

from __future__ import annotations

from pathlib import Path

from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.formats.agent_sessions import AgentSessionFormat
from hotprefix.traces.formats.azure import AzureFormat
from hotprefix.traces.formats.base import TraceFormat
from hotprefix.traces.formats.ledger_rows import LedgerFormat
from hotprefix.traces.formats.mooncake import MooncakeFormat
from hotprefix.traces.formats.own import OwnFormat
from hotprefix.traces.lines import read_head

FORMATS: tuple[TraceFormat, ...] = (
    MooncakeFormat(),
    AgentSessionFormat(),
    OwnFormat(),
    AzureFormat(),
    LedgerFormat(),
)


def format_of(path: Path) -> TraceFormat:
    """The format of a file. Raises `BrokenTrace` if it is none of them."""
    if path.is_fifo() or path.is_char_device():
        raise BrokenTrace(
            f"{path} is no file but a stream, and traces are read more than once. Write it to a file first."
        )
    head = read_head(path)
    if not head.strip():
        raise BrokenTrace(f"{path} is empty.")
    for known in FORMATS:
        if known.accepts(path, head):
            return known
    names = ", ".join(known.name for known in FORMATS)
    raise BrokenTrace(
        f"{path} is none of the known formats ({names}). See docs/REPLAY.md for what they look like."
    )


__all__ = ["FORMATS", "TraceFormat", "format_of"]
