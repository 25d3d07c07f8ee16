"""The peer's process: answers, ends with the block, and says so if it fails."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hotprefix.base.errors import HotprefixError
from hotprefix.bench.peer import gguf_of, running_peer
from tests.tiny_gguf import write_tiny_gguf


@pytest.fixture(scope="module")
def tiny_gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_gguf(tmp_path_factory.mktemp("peer") / "tiny.gguf")


def test_peer_measures_what_it_is_asked(tiny_gguf: Path, tmp_path: Path) -> None:
    async def run() -> tuple[str, list[float]]:
        async with running_peer(tiny_gguf, tmp_path / "peer.log") as peer:
            prompts = [[5 + at] * 40 for at in range(3)]
            return peer.about, [await peer.seconds(prompts, out) for out in (1, 48)]

    about, (short, long) = asyncio.run(run())
    assert about.startswith("OpenVINO GenAI 20")
    assert 0 < short < 60
    assert 0 < long < 60


def test_peer_that_can_not_load_is_a_clear_error(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")

    async def run() -> None:
        async with running_peer(broken, tmp_path / "peer.log"):
            pytest.fail("there is nothing to load")

    with pytest.raises(HotprefixError, match=r"see .*peer\.log, or use --no-peer"):
        asyncio.run(run())


def test_gguf_is_found_by_path_only_if_it_is_one(tiny_gguf: Path, tmp_path: Path) -> None:
    assert gguf_of(str(tiny_gguf), tmp_path, {}) == tiny_gguf
    assert gguf_of(str(tiny_gguf.parent), tmp_path, {}) is None
    assert gguf_of(str(tmp_path / "absent.gguf"), tmp_path, {}) is None
