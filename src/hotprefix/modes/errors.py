"""Errors of the caching modes that a client gets to see."""

from __future__ import annotations

from hotprefix.base.errors import RequestError


class CacheNotFound(RequestError):
    """The tenant has no named cache of that name."""

    status = 404
    code = "cache_not_found"


class CacheLimitReached(RequestError):
    """A limit of named caches, or of the memory for pinned prefixes, is reached."""

    status = 409
    code = "cache_limit_reached"
