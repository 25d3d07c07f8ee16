"""Keys, shares and the public zone of a running server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import cached, serving

RULES = " ".join(f"Rule {number}: shelf {number * 7} holds {number * 3} boxes." for number in range(60))
QUESTION = [{"role": "system", "content": RULES}, {"role": "user", "content": "Where is box 3?"}]

pytestmark = pytest.mark.model


def keys(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "hotprefix", "keys", *options, "--state-dir", str(folder / "state")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def new_key(folder: Path, tenant: str) -> str:
    document = json.loads(keys(folder, "create", tenant, "--json"))
    key: str = document["key"]
    return key


def test_keys_close_the_server_and_keep_tenants_apart(default_model: ModelManifest, tmp_path: Path) -> None:
    one, other = new_key(tmp_path, "one"), new_key(tmp_path, "other")
    with serving(tmp_path, "--profile", "hotprefix") as server:
        assert server.post(messages=QUESTION, max_tokens=1).status_code == 401
        assert server.post(messages=QUESTION, max_tokens=1, key="hpk_wrong").status_code == 401
        assert cached(server.ask(messages=QUESTION, max_tokens=1, key=one)) == 0
        assert cached(server.ask(messages=QUESTION, max_tokens=1, key=one)) > 900
        assert cached(server.ask(messages=QUESTION, max_tokens=1, key=other)) == 0


def test_a_public_prefix_is_shared_and_nothing_else(default_model: ModelManifest, tmp_path: Path) -> None:
    one, other = new_key(tmp_path, "one"), new_key(tmp_path, "other")
    (tmp_path / "rules.txt").write_text(RULES, encoding="utf-8")
    keys(tmp_path, "public", "add", str(tmp_path / "rules.txt"))
    with serving(tmp_path, "--profile", "hotprefix") as server:
        whole = server.ask(messages=QUESTION, max_tokens=1, key=one)["usage"]["prompt_tokens"]
        again = cached(server.ask(messages=QUESTION, max_tokens=1, key=one))
        shared = cached(server.ask(messages=QUESTION, max_tokens=1, key=other))
        assert again == whole
        assert whole - 64 < shared < whole
        assert shared % 32 == 0, "whole blocks are public, the rest is private"
