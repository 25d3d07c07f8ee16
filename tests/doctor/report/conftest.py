"""A real PostgreSQL, where there is one, and the event loop of tests over the application."""

from __future__ import annotations

import pytest

from tests.ledger.conftest import postgres_server, postgres_url

__all__ = ["postgres_server", "postgres_url"]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
