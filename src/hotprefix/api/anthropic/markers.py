"""`cache_control` read as strictly as Anthropic reads it."""

from __future__ import annotations

from typing import Any

from hotprefix.api.markers import MarkerReader
from hotprefix.base.errors import InvalidRequest
from hotprefix.profiles.profile import Profile, Surplus


class StrictMarkerReader(MarkerReader):
    """What can't be used is an error, not a warning."""

    def ttl(self, value: Any, path: str) -> str | None:
        if value is None or self._rules is None:
            return super().ttl(value, path)
        if not isinstance(value, dict) or value.get("type") != "ephemeral":
            raise InvalidRequest(
                f'Invalid value for \'{path}\': input should be {{"type": "ephemeral"}}.', param=path
            )
        wanted = value.get("ttl")
        if wanted is None:
            return self._rules.default_ttl
        if not isinstance(wanted, str) or wanted not in self._rules.ttls:
            known = ", ".join(f"'{name}'" for name in self._rules.ttls)
            raise InvalidRequest(
                f"Invalid value for '{path}.ttl': input should be one of {known}.", param=f"{path}.ttl"
            )
        return wanted


def reader_for(profile: Profile) -> MarkerReader:
    """Strict where surplus markers are errors too."""
    strict = profile.explicit is not None and profile.explicit.surplus is Surplus.REJECT
    return StrictMarkerReader(profile) if strict else MarkerReader(profile)
