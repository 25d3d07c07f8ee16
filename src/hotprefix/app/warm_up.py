"""What a server warms before it calls itself ready: named caches of an earlier run, and `--warm` files."""

from __future__ import annotations

from collections.abc import Sequence

import httpx
from rich.console import Console
from structlog.typing import FilteringBoundLogger

from hotprefix.api.named_document import Renderer
from hotprefix.app.warm_bar import Advance, warm_bar
from hotprefix.app.warm_file import Prefix
from hotprefix.app.warming import CannotWarm, credentials, warmed
from hotprefix.app.wiring import Application
from hotprefix.base.errors import HotprefixError

_ITSELF = "http://hotprefix"


async def warm_up(
    built: Application,
    prefixes: Sequence[Prefix],
    key: str | None,
    log: FilteringBoundLogger,
    progress: Console,
) -> None:
    """Compute it all, tell of what can't be, then open the gate. Nothing here stops the server."""
    named = built.service.named
    earlier = named.to_restore()
    with warm_bar(progress, "Warming", len(earlier) + len(prefixes)) as advance:
        render = Renderer(built.service)
        for cache in earlier:
            name = cache.definition.name
            try:
                if not await named.restore(cache, render):
                    log.warning("named cache is stale", name=name, problem=cache.note)
            except HotprefixError as error:
                log.warning("named cache is stale", name=name, problem=str(error))
            advance(name)
        try:
            await _warm_files(built, prefixes, key, log, advance)
        except CannotWarm as error:
            log.warning("warming ended", problem=str(error))
    built.service.gate.open()


async def _warm_files(
    built: Application,
    prefixes: Sequence[Prefix],
    key: str | None,
    log: FilteringBoundLogger,
    advance: Advance,
) -> None:
    if not prefixes:
        return
    headers = credentials(key)
    transport = httpx.ASGITransport(app=built.app)
    async with httpx.AsyncClient(transport=transport, base_url=_ITSELF, headers=headers) as client:
        async for one in warmed(client, prefixes, built.service.clock):
            if one.problem:
                log.warning("prefix not warmed", prefix=one.prefix.label, problem=one.problem)
            else:
                log.info("prefix warmed", prefix=one.prefix.label, computed=one.computed, known=one.known)
            advance(one.prefix.label)
