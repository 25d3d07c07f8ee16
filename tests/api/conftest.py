from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def server(anyio_backend: str) -> AsyncIterator[Server]:
    async with in_process(ScriptedEngine(), profile="hotprefix") as server:
        yield server
        assert server.engine.in_flight == 0
        assert server.inflight.count == 0
