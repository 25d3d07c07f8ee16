"""Errors of tuning."""

from __future__ import annotations

from hotprefix.base.errors import HotprefixError


class DoesNotFit(HotprefixError):
    """A model, or one request of the length asked for, has no room; the message has the numbers."""
