"""Fixtures that every room's tests share."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import structlog

from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import ModelStore, open_store
from tests.tiny_gguf import write_tiny_gguf


@pytest.fixture(autouse=True)
def own_logs() -> Iterator[None]:
    """A command's logs end with its test: the next test's output is another file."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session")
def default_model() -> ModelManifest:
    """The default model, prepared in the user's cache (`HOTPREFIX_HOME`) and fetched if it isn't there."""
    return open_store(os.environ).resolve(DEFAULT_MODEL)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> ModelManifest:
    """A tiny llama with random weights, prepared to be served."""
    folder = tmp_path_factory.mktemp("tiny")
    return ModelStore(folder / "store").resolve(str(write_tiny_gguf(folder / "tiny.gguf")))
