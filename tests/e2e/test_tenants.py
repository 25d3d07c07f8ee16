"""Keys, shares and the public zone of a running server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import cached, serving, until

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


def test_shares_and_public_prefixes_change_while_the_server_runs(
    default_model: ModelManifest, tmp_path: Path
) -> None:
    one, other = new_key(tmp_path, "one"), new_key(tmp_path, "other")
    admin = json.loads(keys(tmp_path, "create", "ops", "--admin", "--json"))["key"]
    (tmp_path / "rules.txt").write_text(RULES, encoding="utf-8")
    with serving(tmp_path, "--profile", "hotprefix") as server:

        def ask(key: str) -> int:
            return cached(server.ask(messages=QUESTION, max_tokens=1, key=key))

        def shares() -> dict[str, float]:
            return {
                dict(labels)["tenant"]: value
                for (name, labels), value in server.metrics().items()
                if name == "hotprefix_kv_tenant_blocks"
            }

        ask(one)
        assert ask(other) == 0
        assert shares() == {}
        headers = {"authorization": f"Bearer {admin}"}
        quota = server.client.put("/admin/quotas/one", json={"floor_tokens": 1000}, headers=headers).json()
        assert quota["floor_is_whole"]
        ask(one)
        until(lambda: shares().get("one", 0) > 30, lambda: f"no share: {shares()}")
        # By another process: the server follows within a second.
        keys(tmp_path, "public", "add", str(tmp_path / "rules.txt"))
        until(lambda: bool(server.log_lines("public prefixes in force")), lambda: "no public prefix")
        assert ask(one) == 0, "its private blocks are not the public ones"
        assert ask(other) > 900
        keys(tmp_path, "quota", "one", "--floor", "none")
        until(lambda: shares() == {}, lambda: f"still a share: {shares()}")
        usage = server.client.get("/admin/usage", headers=headers).json()
        assert [(group["tenant"], group["requests"]) for group in usage["groups"]] == [
            ("one", 3),
            ("other", 2),
        ]


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
