"""`hotprefix prompts`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from hotprefix.doctor.prompts import open_registry
from tests.doctor.prompts.folders import RULES
from tests.doctor.prompts.test_log import answered, written

RUNNER = CliRunner()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for prompts that does not exist yet."""
    monkeypatch.setenv("HOTPREFIX_PROMPTS", str(tmp_path / "prompts"))
    monkeypatch.setenv("COLUMNS", "300")
    return tmp_path / "prompts"


def prompts(*words: str, given: bytes | None = None) -> Result:
    return RUNNER.invoke(build_app(), ["prompts", *words], input=given, catch_exceptions=False)


def begun(folder: Path) -> None:
    for text in (RULES, RULES + "Be kind."):
        assert (
            prompts("add", "greeting", "-", "--release", "--owner", "me", given=text.encode()).exit_code == 0
        )
    assert prompts("split", "greeting", "--weights", "v1=50,v2=50").exit_code == 0
    assert folder.is_dir()


def test_from_adding_to_showing(folder: Path, tmp_path: Path) -> None:
    begun(folder)
    assert "v1 50%, v2 50%" in prompts("list").output
    assert json.loads(prompts("list", "--json").output)["greeting"]["experiment"]["arms"] == {
        "v1": 50,
        "v2": 50,
    }
    assert prompts("show", "greeting@v1").stdout_bytes == RULES.encode()
    assert json.loads(prompts("show", "greeting", "--json").output)["label"] == "greeting@v2"
    assert "released" in prompts("show", "greeting", "--versions").output
    draft = tmp_path / "new.md"
    draft.write_bytes(b"One\r\ntwo")
    assert "greeting@v3" in prompts("add", "greeting", str(draft)).stderr
    assert prompts("show", "greeting@v3").stdout_bytes == b"One\r\ntwo"
    assert "Released greeting@v3: sha256:" in prompts("release", "greeting@v3").stderr
    assert prompts("retire", "greeting@v3").exit_code == 0


def test_the_difference_of_versions(folder: Path) -> None:
    begun(folder)
    found = prompts("diff", "greeting", "v1", "v2")
    assert "+" + RULES + "Be kind." in found.output
    assert "a cache can share them" in found.stderr


def test_splitting(folder: Path) -> None:
    begun(folder)
    told = prompts("split", "greeting", "alice", "bob").output
    registry = open_registry(folder)
    assert told == "".join(
        f"{unit}\t{registry.choose('greeting', unit).version.name}\n" for unit in ("alice", "bob")
    )
    facts = json.loads(prompts("split", "greeting", "--weights", "v1=60,v2=40", "--json").output)
    assert facts["shares"] == {"v1": 0.6, "v2": 0.4}
    assert 0.08 < facts["moved"] < 0.12
    for weights in ("v1=x", "v1=inf,v2=1", "v1=nan,v2=1", "v1=1,v1=2", "v1"):
        refused = prompts("split", "greeting", "--weights", weights)
        assert (refused.exit_code, refused.stderr[:7]) == (2, "Error: "), weights
    assert "no experiment" in prompts("split", "greeting", "--end").output


def test_comparing(folder: Path, tmp_path: Path) -> None:
    begun(folder)
    documents = [
        answered(n, f"v{1 + n % 2}", session=f"s{n}") | {"ttft_ms": 100 + n % 17 + 60 * (n % 2)}
        for n in range(100)
    ]
    log = written(tmp_path / "calls.jsonl", documents)
    page = tmp_path / "page.html"
    found = prompts("compare", "greeting", log, "--json", "--html", str(page))
    facts = json.loads(found.stdout)
    first = facts["findings"][0]
    assert (first["metric"], first["verdict"], facts["unit"]) == ("first_token", "worse", "session")
    assert found.exit_code == 1
    assert page.stat().st_size > 1_000_000
    shown = prompts("compare", "greeting", log)
    assert "Mann–Whitney U" in shown.output
    # The other way round it is better, and that is no reason to fail.
    assert prompts("compare", "greeting", log, "--weights", "v2=50,v1=50").exit_code == 0


def test_a_span_is_given_in_dates(folder: Path, tmp_path: Path) -> None:
    begun(folder)
    documents = [
        answered(n, f"v{1 + n // 4 % 2}") | {"timestamp": 86_400 * (20_000 + n % 4)} for n in range(200)
    ]
    log = written(tmp_path / "calls.jsonl", documents)

    def counted(*words: str) -> int:
        arms = json.loads(prompts("compare", "greeting", log, "--json", *words).stdout)["arms"]
        return sum(int(arm["requests"]) for arm in arms)

    assert counted() == 200
    assert counted("--since", "2024-10-05") == 150
    assert counted("--since", "2024-10-05", "--until", "2024-10-06T00:00:00Z") == 50
    assert "--since" in prompts("compare", "greeting", log, "--since", "1728000000").output


def test_what_can_not_be_judged_has_a_code_of_its_own(folder: Path, tmp_path: Path) -> None:
    begun(folder)
    log = written(tmp_path / "calls.jsonl", [answered(n, f"v{1 + n % 2}") for n in range(20)])
    found = prompts("compare", "greeting", log)
    assert found.exit_code == 2
    assert "too few: 20 more needed" in found.output
    assert "by Holm for 0 tests" in found.output
    assert prompts("compare", "nobody", log).exit_code == 2
    assert prompts("compare", "greeting", str(tmp_path / "none.jsonl")).exit_code == 2


def test_reviewing(folder: Path, tmp_path: Path) -> None:
    begun(folder)
    assert prompts("review", "--check").exit_code == 0
    log = written(tmp_path / "calls.jsonl", [answered(1, "v1")])
    out = tmp_path / "review.md"
    found = prompts("review", log, "--check", "--markdown", str(out), "--csv", str(tmp_path / "review.csv"))
    assert found.exit_code == 1
    assert "not used" in found.output
    assert "`greeting@v2`" in out.read_text()
    assert json.loads(prompts("review", log, "--json").output)["items"][0]["due"] == "unused"
    assert "is reviewed" in prompts("review", "--done", "greeting@v1").stderr


def test_trouble_is_told_in_a_line(folder: Path) -> None:
    found = prompts("show", "greeting")
    assert found.exit_code == 2
    assert found.stderr.startswith("Error: There is no folder")
    assert "Traceback" not in found.stderr
    assert folder.name in found.stderr
