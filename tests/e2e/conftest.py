"""Servers that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import Server, serving


@pytest.fixture(scope="session")
def long_lived(default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the default model, which tells every cached token, however few there are.

    It decodes exactly: answers that are computed again from their text are equal to the last bit.
    """
    options = ("--profile", "hotprefix", "--decode", "exact")
    with serving(tmp_path_factory.mktemp("serve"), *options) as server:
        yield server


@pytest.fixture
def server(long_lived: Server) -> Iterator[Server]:
    """The shared server; after every test nothing may be left in it."""
    yield long_lived
    long_lived.require_nothing_left()


@pytest.fixture(scope="session")
def narrow(default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that works on one answer at a time and lets one more wait; all else is as it comes."""
    with serving(tmp_path_factory.mktemp("narrow"), "--max-running", "1", "--max-waiting", "2") as server:
        yield server


@pytest.fixture(scope="session")
def plain(default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that computes every prompt in full."""
    with serving(tmp_path_factory.mktemp("plain"), "--no-cache", "--decode", "exact") as server:
        yield server
