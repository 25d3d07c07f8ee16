"""`cache_control` as clients write it → markers, and words about those that count for nothing."""

from __future__ import annotations

from typing import Any

from hotprefix.profiles.profile import Profile


class MarkerReader:
    """Reads markers leniently, as DashScope does: what can't be used is ignored, with a warning."""

    def __init__(self, profile: Profile) -> None:
        self._rules = profile.explicit
        self._name = profile.name
        self.warnings: list[str] = []

    def ttl(self, value: Any, path: str) -> str | None:
        """The TTL name of a marker; None if there is none, or none that counts."""
        if value is None:
            return None
        if self._rules is None:
            self.warnings.append(f"{path}: the profile {self._name} has no cache markers")
            return None
        if not isinstance(value, dict) or value.get("type") != "ephemeral":
            self.warnings.append(f'{path}: only {{"type": "ephemeral"}} is known')
            return None
        wanted = value.get("ttl", self._rules.default_ttl)
        if not isinstance(wanted, str) or wanted not in self._rules.ttls:
            self.warnings.append(f"{path}: unknown ttl; {self._rules.default_ttl} is used")
            return self._rules.default_ttl
        return wanted

    def misplaced(self, value: Any, path: str, advice: str) -> None:
        """A marker where markers have no effect."""
        if value is not None:
            self.warnings.append(f"{path} has no effect: {advice}")
