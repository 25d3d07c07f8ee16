"""Whose caching rules the Messages routes follow."""

from __future__ import annotations

from dataclasses import replace

from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.profile import Profile

_ANTHROPIC = "anthropic"


def anthropic_rules(server: Profile, profiles: ProfileBook) -> Profile:
    """The server's own profile if it is one of Anthropic's, else the newest of those."""
    if server.vendor == _ANTHROPIC:
        return server
    found = [profile for profile in profiles.profiles.values() if profile.vendor == _ANTHROPIC]
    return max(found, key=lambda profile: profile.dated, default=server)


def compatible_rules(server: Profile, profiles: ProfileBook) -> Profile:
    """For DashScope's Anthropic-compatible route: DashScope's rules where the server has them."""
    return server if server.vendor == "dashscope" else anthropic_rules(server, profiles)


def without_order(profile: Profile) -> Profile:
    """The same rules for markers whose order has been checked in the order of the request, which is not
    the order of the prompt: there, tools may follow the system text."""
    if profile.explicit is None or not profile.explicit.longer_ttl_first:
        return profile
    return replace(profile, explicit=replace(profile.explicit, longer_ttl_first=False))
