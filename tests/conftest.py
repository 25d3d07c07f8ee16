"""Fixtures that every room's tests share."""

from __future__ import annotations

import os

import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import ModelStore, open_store
from tests.tiny_gguf import write_tiny_gguf


@pytest.fixture(scope="session")
def default_model() -> ModelManifest:
    """The default model, prepared in the user's cache (`HOTPREFIX_HOME`) and fetched if it isn't there."""
    return open_store(os.environ).resolve(DEFAULT_MODEL)


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> ModelManifest:
    """A tiny llama with random weights, prepared to be served."""
    folder = tmp_path_factory.mktemp("tiny")
    return ModelStore(folder / "store").resolve(str(write_tiny_gguf(folder / "tiny.gguf")))
