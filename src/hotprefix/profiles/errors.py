"""What can be wrong with profiles."""

from __future__ import annotations

from hotprefix.base.errors import HotprefixError


class UnknownProfile(HotprefixError):
    """No profile has this name."""


class BrokenProfile(HotprefixError):
    """A profile file is no TOML, or says something that the schema refuses."""
