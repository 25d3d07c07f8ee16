"""What can be wrong with a plan."""

from __future__ import annotations

from hotprefix.base.errors import HotprefixError


class PlanError(HotprefixError):
    """A plan can't be made of what was given; the message says what is missing or wrong."""
