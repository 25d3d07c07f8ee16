"""`x-dashscope-session-cache`: whether a response uses the session cache."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import Scope

from hotprefix.profiles.profile import Profile

SESSION_HEADER = "x-dashscope-session-cache"


def wants_session(scope: Scope, profile: Profile, warnings: list[str]) -> bool:
    """Says in `warnings` what can't be done."""
    value = Headers(scope=scope).get(SESSION_HEADER)
    if value is None or (word := value.strip().lower()) == "disable":
        return False
    if word != "enable":
        warnings.append(f"{SESSION_HEADER} has no effect: only enable and disable are known")
        return False
    if profile.session is None:
        warnings.append(f"{SESSION_HEADER} has no effect: the profile {profile.name} has no session cache")
        return False
    return True


def warn_of_session(scope: Scope) -> list[str]:
    """For dialects without a session cache."""
    value = Headers(scope=scope).get(SESSION_HEADER)
    if value is None or value.strip().lower() == "disable":
        return []
    return [f"{SESSION_HEADER} has no effect here: the session cache is for Responses"]
