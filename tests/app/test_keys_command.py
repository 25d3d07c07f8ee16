"""`hotprefix keys` from the first key to the last, over a real database."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from hotprefix.base.clock import SystemClock
from hotprefix.base.errors import Unauthenticated
from hotprefix.tenants.api_key import is_key
from hotprefix.tenants.tenancy import open_tenancy


class Keys:
    """The command in a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *arguments: str, given: str | None = None) -> Result:
        command = ["keys", *arguments, "--state-dir", str(self.folder)]
        return CliRunner().invoke(build_app(), command, env={"COLUMNS": "200"}, input=given)

    def ask(self, *arguments: str) -> Any:
        result = self.run(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "state")


def test_a_key_alone_goes_to_stdout(keys: Keys) -> None:
    result = keys.run("create", "acme")
    assert result.exit_code == 0, result.output
    assert is_key(result.stdout.strip())
    assert "only now" in result.stderr


def test_create_with_everything(keys: Keys) -> None:
    line = "create acme --name web --expires 30d --admin --rpm 1,000 --tpm 50000 --concurrent 4"
    made = keys.ask(*line.split())
    assert is_key(made["key"])
    assert made["expires"] - made["created"] == pytest.approx(30 * 86_400, abs=60)
    facts = (
        made["name"],
        made["admin"],
        made["requests_per_minute"],
        made["tokens_per_minute"],
        made["concurrent"],
    )
    assert facts == ("web", True, 1000, 50_000, 4)
    with open_tenancy(keys.folder, SystemClock()) as tenancy:
        assert tenancy.keys.verify(made["key"]).id == made["id"]


def test_list_shows_no_key(keys: Keys) -> None:
    made = [keys.ask("create", tenant, "--name", "[red]odd[/]") for tenant in ("acme", "other")]
    table = keys.run("list").output
    for key in made:
        assert key["key"] not in table and key["id"] in table and key["hint"] in table
    assert "[red]odd[/]" in table
    listed = keys.ask("list")
    assert [key["tenant"] for key in listed] == ["acme", "other"]
    assert all("key" not in key for key in listed)
    assert [key["id"] for key in keys.ask("list", "--tenant", "other")] == [made[1]["id"]]


def test_revoke_and_rotate(keys: Keys) -> None:
    first = keys.ask("create", "acme", "--rpm", "5")
    second = keys.ask("rotate", first["id"], "--overlap", "1h")
    third = keys.ask("rotate", second["id"])
    assert third["requests_per_minute"] == 5
    with open_tenancy(keys.folder, SystemClock()) as tenancy:
        tenancy.keys.verify(first["key"])
        tenancy.keys.verify(third["key"])
        with pytest.raises(Unauthenticated):
            tenancy.keys.verify(second["key"])
    assert keys.run("revoke", third["id"]).output == f"Revoked {third['id']} of acme.\n"
    assert [key["state"] for key in keys.ask("list")] == ["active", "revoked", "revoked"]


def test_quotas_change_only_where_told(keys: Keys) -> None:
    assert keys.ask("quota") == []
    set_ = keys.ask(
        "quota", "acme", "--floor", "1,200", "--ceiling", "8000", "--at-ceiling", "reject", "--rpm", "60"
    )
    assert (set_["floor_tokens"], set_["ceiling_tokens"], set_["at_ceiling"]) == (1200, 8000, "reject")
    assert keys.ask("quota", "acme", "--tpm", "9") == set_ | {"tokens_per_minute": 9}
    assert keys.ask("quota", "acme", "--rpm", "none", "--ceiling", "none")["ceiling_tokens"] is None
    assert keys.ask("quota", "acme", "--ceiling", "1200")["requests_per_minute"] is None
    keys.ask("quota", "@public", "--floor", "64")
    assert [quota["tenant"] for quota in keys.ask("quota")] == ["@public", "acme"]
    assert "1,200" in keys.run("quota").output
    keys.ask("quota", "@public", "--floor", "none")
    assert [quota["tenant"] for quota in keys.ask("quota")] == ["acme"]


def test_looking_at_a_quota_sets_none(keys: Keys) -> None:
    assert keys.ask("quota", "nobody")["floor_tokens"] == 0
    assert keys.ask("quota") == []


def test_the_public_zone(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "shop.txt").write_text("You sell shoes.\n")
    (tmp_path / "tools.json").write_text(
        '{"messages":[{"role":"system","content":"x"}],"tools":[{"type":"function"}]}'
    )
    text = keys.ask("public", "add", str(tmp_path / "shop.txt"))
    tools = keys.ask("public", "add", str(tmp_path / "tools.json"), "--name", "with tools")
    assert (text["name"], text["kind"], text["begins_with"]) == ("shop.txt", "messages", "You sell shoes.")
    assert (tools["name"], tools["tools"]) == ("with tools", 1)
    raw = keys.run("public", "add", "-", "--raw", "--name", "story", given="Once upon a time")
    assert raw.exit_code == 0 and "story is public" in raw.output
    assert [prefix["kind"] for prefix in keys.ask("public", "list")] == ["messages", "messages", "text"]
    assert "You sell shoes." in keys.run("public", "list").output
    assert "private again" in keys.run("public", "rm", text["id"]).output
    assert [prefix["name"] for prefix in keys.ask("public", "list")] == ["with tools", "story"]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("create acme --expires soon", "time span"),
        ("create acme --expires 9999w", "ten years"),
        ("create acme --rpm 0", "above 0"),
        ("create acme --rpm many", "above 0"),
        ("quota acme --at-ceiling shout", "borrow"),
        ("rotate key_1 --overlap 5", "time span"),
    ],
)
def test_a_bad_option_is_named(keys: Keys, line: str, says: str) -> None:
    result = keys.run(*line.split())
    assert result.exit_code == 2
    assert says in " ".join(result.output.split())
    assert not keys.folder.exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("revoke key_1", "There is no key 'key_1'"),
        ("create bad/name", "can't be a tenant's name"),
        ("quota acme --floor 10 --ceiling 9", "below the floor"),
        ("public rm pub_1", "There is no public prefix 'pub_1'"),
        ("public add no-such-file", "no-such-file"),
    ],
)
def test_errors_are_one_line_without_a_traceback(tmp_path: Path, line: str, says: str) -> None:
    command = [sys.executable, "-m", "hotprefix", "keys", *line.split(), "--state-dir", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_folder_follows_the_environment(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        build_app(), ["keys", "create", "acme"], env={"XDG_STATE_HOME": str(tmp_path)}
    )
    assert result.exit_code == 0, result.output
    assert (tmp_path / "hotprefix" / "tenants.sqlite3").exists()
