"""Everybody is asked who they are before anything is read, except where nothing is at stake."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from hotprefix.api.identity import Admission, Doorman

_OPEN = frozenset({"/healthz", "/readyz", "/metrics", "/dashboard"})
_OWN_GATE = "/dashboard/"
"""Below it everybody is asked too, but a page that asks every few seconds counts toward no rate limit."""
_KEY = "hotprefix.admission"


class Admittance:
    """Lets requests in and, when they are answered, out again. Without a doorman it stands open."""

    def __init__(self, app: ASGIApp, doorman: Doorman | None) -> None:
        self._app = app
        self._doorman = doorman

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._doorman is None or scope["type"] != "http" or _is_open(scope["path"]):
            await self._app(scope, receive, send)
            return
        with self._doorman.admitted(scope) as admission:
            scope[_KEY] = admission
            await self._app(scope, receive, send)


def _is_open(path: str) -> bool:
    return path in _OPEN or path.startswith(_OWN_GATE)


def admission_of(scope: Scope) -> Admission | None:
    """How this request was let in; None where nobody asks."""
    admission: Admission | None = scope.get(_KEY)
    return admission
