"""A real server with a cut network and scaled positions."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.server import Server, serving
from tests.tiny_gguf import Shape, write_tiny_gguf

LONG = [5 + 7 * place % 250 for place in range(2500)]
"""The model was trained on 2,048 tokens."""


def completion(server: Server, prompt: list[int]) -> tuple[int, str]:
    fields = {"model": "tiny", "prompt": prompt, "max_tokens": 4, "ignore_eos": True}
    response = server.post("/v1/completions", temperature=0, **fields)
    return response.status_code, response.text


def test_layers_of_two_types_and_twice_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPREFIX_HOME", str(tmp_path / "home"))
    source = write_tiny_gguf(tmp_path / "tiny.gguf", shape=Shape(layers=4))
    options = ("--model", str(source), "--kv-arena", "64M")
    with serving(tmp_path / "plain", *options) as plain:
        (model,) = plain.client.get("/v1/models").json()["data"]
        assert (model["id"], model["max_model_len"]) == ("tiny", 2048)
        status, text = completion(plain, LONG)
        assert status == 400
        assert "context_length_exceeded" in text
        assert completion(plain, LONG[:2000])[0] == 200
    options += ("--rope-scaling", "yarn:2", "--kv-precision", "layered-u8")
    with serving(tmp_path / "scaled", *options) as scaled:
        (model,) = scaled.client.get("/v1/models").json()["data"]
        assert model["max_model_len"] == 4096
        assert model["kv_precision"].endswith("+u8")
        # Three layers of 16 bits and one of 8.
        assert model["kv_bytes_per_token"] == 3 * 2 * 64 * 2 + 64 + 8 + 80
        assert completion(scaled, LONG)[0] == 200
        first, again = (completion(scaled, [*LONG, 9, 9, 9]) for _ in range(2))
        assert first[0] == again[0] == 200
        assert scaled.metric("prefix_cache_hits_total") > 2 * 2400
        assert completion(scaled, LONG * 2)[0] == 400
