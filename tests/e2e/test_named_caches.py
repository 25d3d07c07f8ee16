"""Named caches and warm starts with the real model: held under pressure, and back after a restart."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import Server, cached, serving

pytestmark = [pytest.mark.model, pytest.mark.slow]

OPTIONS = ("--profile", "hotprefix", "--kv-arena", "64M")


def rules(subject: str) -> dict[str, str]:
    lines = " ".join(f"Rule {number}: {subject} {number} stands on shelf {number}." for number in range(40))
    return {"role": "system", "content": f"You know all about {subject}. {lines}"}


SHORT = [{"role": "system", "content": "You answer customers of a lamp shop."}]


def test_short_prefixes_are_kept_at_once_if_they_are_named_or_warmed(
    default_model: ModelManifest, tmp_path: Path
) -> None:
    warm = tmp_path / "warm.jsonl"
    entry = [
        {"role": "system", "content": "You tell the way to the station."},
        {"role": "user", "content": "Go"},
    ]
    warm.write_text(json.dumps({"messages": entry}), encoding="utf-8")
    with serving(tmp_path / "serve", "--kv-arena", "64M") as server:
        made = server.client.post("/v1/caches", json={"name": "shop", "messages": SHORT, "pin": True})
        assert (made.status_code, made.json()["state"]) == (201, "warm")
    with serving(tmp_path / "serve", "--kv-arena", "64M", "--warm", str(warm)) as server:
        assert server.client.get("/v1/caches/shop").json()["state"] == "warm"
        before = server.metric("prefix_cache_hits_total")
        usage = server.ask(messages=entry, max_tokens=1)["usage"]
        # The profile counts no hit so short, the engine had it all the same.
        assert usage["prompt_tokens_details"]["cached_tokens"] == 0
        assert server.metric("prefix_cache_hits_total") - before == usage["prompt_tokens"]


def ask(server: Server, subject: str) -> int:
    """Asks about a subject; tokens that the cache had."""
    question = {"role": "user", "content": "Which shelf?"}
    return cached(server.ask(messages=[rules(subject), question], max_tokens=1))


def test_a_cache_is_held_and_comes_back(default_model: ModelManifest, tmp_path: Path) -> None:
    warm = tmp_path / "warm.jsonl"
    warm.write_text(json.dumps({"messages": [rules("books")]}), encoding="utf-8")
    with serving(tmp_path / "serve", *OPTIONS) as server:
        assert ask(server, "lamps") < 32
        made = server.client.post("/v1/caches", json={"name": "lamps", "messages": [rules("lamps")]}).json()
        # The request before had computed it.
        assert (made["computed_tokens"], made["reused_tokens"]) == (2, made["tokens"] - 2)
        for subject in ("cups", "pens", "hats", "maps", "keys", "jars", "nets", "pots"):
            assert ask(server, subject) < 32
        # The others went, this one was held.
        assert ask(server, "cups") < 32
        assert server.metric("kv_evictions_total") > 0
        assert ask(server, "lamps") >= made["tokens"]
        assert server.client.get("/v1/caches/lamps").json()["state"] == "warm"
        server.signal(signal.SIGTERM)
        assert server.wait() == 0

    with serving(tmp_path / "serve", *OPTIONS, "--warm", str(warm)) as server:
        assert server.client.get("/v1/caches/lamps").json()["state"] == "warm"
        assert ask(server, "lamps") >= made["tokens"]
        assert ask(server, "books") >= made["tokens"] - 40
        assert server.client.delete("/v1/caches/lamps").status_code == 200
        server.require_nothing_left()
        (line,) = server.log_lines("prefix warmed")
        assert line["computed"] > 300

    # Another format of keys and values: computed again, and told.
    server_options = ("--profile", "hotprefix", "--kv-precision", "u8")
    with serving(tmp_path / "other", *OPTIONS) as server:
        server.client.post("/v1/caches", json={"name": "lamps", "messages": [rules("lamps")], "pin": True})
    with serving(tmp_path / "other", *server_options) as server:
        cache = server.client.get("/v1/caches/lamps").json()
        assert (cache["state"], cache["pinned"]) == ("warm", True)
        assert "have changed" in cache["note"]
