"""Shares of the cache and public prefixes: what the tenants' database says is what the engine does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import asynccontextmanager
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from hotprefix.api.service import Prompts
from hotprefix.base.errors import HotprefixError
from hotprefix.engine.front import EngineFront
from hotprefix.keys.zones import PUBLIC_TENANT, PublicZone
from hotprefix.tenants.public_prefix import PublicPrefix
from hotprefix.tenants.quota import TenantQuota
from hotprefix.tenants.tenancy import Tenancy

POLL_SECONDS = 1.0
_T = TypeVar("_T")
_State = tuple[tuple[int, int], list[TenantQuota], list[PublicPrefix]]


class LiveGrants:
    """Follows the database, whoever writes to it: this process at once, others within `seconds`.

    To see that nothing has changed costs one question to SQLite. Used on the event loop only.
    """

    def __init__(
        self,
        tenancy: Tenancy,
        engine: EngineFront,
        prompts: Prompts,
        workers: Executor,
        log: FilteringBoundLogger,
        *,
        seconds: float = POLL_SECONDS,
    ) -> None:
        self._tenancy = tenancy
        self._engine = engine
        self._prompts = prompts
        self._workers = workers
        self._log = log
        self._seconds = seconds
        self._one_at_a_time = asyncio.Lock()
        self._version: tuple[int, int] | None = None
        self._quotas: list[TenantQuota] = []
        self._public: list[PublicPrefix] = []
        self.short: Sequence[str] = ()
        """Tenants whose floor is cut: the reserve for floors does not hold it."""

    @property
    def block_size(self) -> int:
        """Tokens that are public or private together."""
        return self._engine.block_size

    @asynccontextmanager
    async def in_force(self) -> AsyncIterator[None]:
        """What the database says holds from here on, and all changes to it. Raises `TenantError`."""
        await self.refresh()
        watching = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def refresh(self) -> None:
        """Put in force what has changed, if anything has. Raises `TenantError`."""
        async with self._one_at_a_time:
            if await self._work(self._tenancy.version) == self._version:
                return
            version, quotas, public = await self._work(self._read)
            if quotas != self._quotas:
                await self._grant(quotas)
            if public != self._public:
                await self._share(public)
            self._version = version

    def tokens(self, prefix: PublicPrefix) -> list[int]:
        """A public prefix in this model's tokens. Raises `RequestError` where it can't be rendered."""
        prompts = self._prompts
        return prefix.tokens(
            lambda messages, tools: prompts.chat(messages, tools, {}, PUBLIC_TENANT),
            lambda text: prompts.text(text, PUBLIC_TENANT),
        )

    async def _grant(self, quotas: list[TenantQuota]) -> None:
        self.short = await self._engine.grant(quotas)
        self._quotas = quotas
        self._log.info("shares of the cache in force", tenants=len(quotas))
        if self.short:
            self._log.warning(
                "floors are cut: the reserve is smaller than their sum", tenants=sorted(self.short)
            )

    async def _share(self, public: list[PublicPrefix]) -> None:
        self._engine.publish(await self._work(lambda: self._zone(public)))
        self._public = public
        self._log.info("public prefixes in force", prefixes=len(public))

    def _zone(self, public: Sequence[PublicPrefix]) -> PublicZone:
        tokens = []
        for prefix in public:
            try:
                tokens.append(self.tokens(prefix))
            except HotprefixError as error:
                self._log.warning("public prefix left out", id=prefix.id, problem=str(error))
        engine = self._engine
        return PublicZone(engine.root_for(PUBLIC_TENANT), engine.block_size, tokens)

    def _read(self) -> _State:
        # The version first: what is written in between is seen as a change the next time.
        tenancy = self._tenancy
        return tenancy.version(), tenancy.quotas.list(), tenancy.public.list()

    async def _watch(self) -> None:
        failed = False
        while True:
            await asyncio.sleep(self._seconds)
            try:
                await self.refresh()
                failed = False
            except HotprefixError as error:
                if not failed:
                    self._log.warning("changes of shares and prefixes are not seen", problem=str(error))
                failed = True

    async def _work(self, work: Callable[[], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._workers, work)
