"""Who may look: prompts are shown, so the door is narrow."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from starlette.datastructures import Headers
from starlette.types import Scope

from hotprefix.api.identity import Doorman
from hotprefix.base.errors import Forbidden

_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_SAME_SITE = ("", "same-origin", "none")
_HERE_ONLY = (
    "The dashboard shows prompts. While there is no API key it opens only in a browser on the server's own "
    "machine, at http://127.0.0.1 or http://localhost. For all others make a key: "
    "hotprefix keys create ops --admin."
)


@dataclass(frozen=True, slots=True)
class Visitor:
    """Whose figures are shown: those of `tenant`, or everybody's if that is None."""

    tenant: str | None = None

    @property
    def sees_all(self) -> bool:
        """An administrator, or the only user of a machine."""
        return self.tenant is None


class Gate:
    """With API keys: an administrator's key shows everything, another key its own tenant.

    Without: whoever is on this machine. The `Host` is checked then, because a page from elsewhere may
    have its own name resolve to this machine; and a proxy would make everybody look local.
    """

    def __init__(self, doorman: Doorman | None) -> None:
        self._doorman = doorman

    @property
    def is_open(self) -> bool:
        """Whether nobody is asked for a key."""
        return self._doorman is None or self._doorman.is_open

    def visitor(self, scope: Scope) -> Visitor:
        """Looked up anew each time. Raises `Unauthenticated` or `Forbidden`."""
        if self._doorman is None or self.is_open:
            _require_here(scope)
            return Visitor()
        identity = self._doorman.recognise(scope)
        return Visitor(None if identity.is_admin else identity.tenant)


def _require_here(scope: Scope) -> None:
    headers = Headers(scope=scope)
    peer = scope.get("client")
    is_near = peer is not None and _is_loopback(peer[0])
    is_direct = not any(name in headers for name in _FORWARDED)
    is_own_page = headers.get("sec-fetch-site", "") in _SAME_SITE
    if not (is_near and is_direct and is_own_page and _is_local_name(headers.get("host", ""))):
        raise Forbidden(_HERE_ONLY)


def _is_local_name(host: str) -> bool:
    """`localhost` or a loopback address, with or without a port."""
    name, _, port = host.rpartition(":")
    if not name or not port.isdecimal():
        name = host
    return name.lower() == "localhost" or _is_loopback(name.removeprefix("[").removesuffix("]"))


def _is_loopback(address: str) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is not None:
        return parsed.ipv4_mapped.is_loopback
    return parsed.is_loopback
