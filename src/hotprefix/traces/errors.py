"""What can be wrong with a trace or with the wish to replay it."""

from __future__ import annotations

from hotprefix.base.errors import HotprefixError


class BrokenTrace(HotprefixError):
    """A trace can't be read; the message names the file and the line."""


class BadReplay(HotprefixError):
    """The settings of a replay don't fit each other or the trace."""
