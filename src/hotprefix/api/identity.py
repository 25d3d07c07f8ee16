"""Who a request is from, and whether it may come in now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.datastructures import Headers
from starlette.types import Scope

from hotprefix.base.clock import Clock
from hotprefix.tenants.authenticator import Authenticator, require_admin
from hotprefix.tenants.identity import Identity
from hotprefix.tenants.limiter import RateLimiter, Visit

_KEY = "hotprefix.identity"


class Admission:
    """A request that is in: `identity` says whose it is."""

    def __init__(self, identity: Identity, limiter: RateLimiter, visit: Visit, clock: Clock) -> None:
        self.identity = identity
        self._limiter = limiter
        self._visit = visit
        self._clock = clock

    def charge(self, prompt_tokens: int) -> None:
        """Count the prompt, once it is tokenised. Raises `RateLimited`."""
        self._limiter.charge(self._visit, prompt_tokens, self._clock.now())


class Doorman:
    """Identifies requests and applies rate limits; belongs to one event loop."""

    def __init__(self, authenticator: Authenticator, limiter: RateLimiter, clock: Clock) -> None:
        self._authenticator = authenticator
        self._limiter = limiter
        self._clock = clock

    def identify(self, scope: Scope) -> Identity:
        """Whose request this is; looked up once for each. Raises `Unauthenticated`."""
        known: Identity | None = scope.get(_KEY)
        if known is None:
            known = scope[_KEY] = self.recognise(scope)
        return known

    @property
    def is_open(self) -> bool:
        """Whether nobody needs a key."""
        return self._authenticator.is_open

    def recognise(self, scope: Scope) -> Identity:
        """As `identify`, looked up anew, for connections that stay. Raises `Unauthenticated`."""
        return self._authenticator.identify(Headers(scope=scope))

    def require_admin(self, scope: Scope) -> Identity:
        """The administrator whose request this is. Raises `Unauthenticated` or `Forbidden`."""
        identity = self.identify(scope)
        require_admin(identity)
        return identity

    @contextmanager
    def admitted(self, scope: Scope) -> Iterator[Admission]:
        """Let a request in; it is out when the block ends. Raises `Unauthenticated` or `RateLimited`."""
        identity = self.identify(scope)
        visit = self._limiter.enter(self._authenticator.subjects(identity), self._clock.now())
        try:
            yield Admission(identity, self._limiter, visit, self._clock)
        finally:
            self._limiter.leave(visit)
