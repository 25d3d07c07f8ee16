"""Servers that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import Server, serving


@pytest.fixture(scope="session")
def long_lived(default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the default model and options."""
    with serving(tmp_path_factory.mktemp("serve")) as server:
        yield server


@pytest.fixture
def server(long_lived: Server) -> Iterator[Server]:
    """The shared server; after every test nothing may be left in it."""
    yield long_lived
    long_lived.require_nothing_left()


@pytest.fixture(scope="session")
def plain(default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that computes every prompt in full."""
    with serving(tmp_path_factory.mktemp("plain"), "--no-cache") as server:
        yield server
