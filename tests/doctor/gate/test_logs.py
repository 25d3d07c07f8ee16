"""Two logs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from tests.doctor.gate.support import RULES, lines, request

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPREFIX_HOME", str(tmp_path / "home"))


def gate(*arguments: str | Path) -> Result:
    return RUNNER.invoke(build_app(), ["gate", *map(str, arguments)])


def facts(*arguments: str | Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gate(*arguments, "--format", "json").output)
    return found


def logged(number: int, system: str, session: str = "", **around: object) -> str:
    body = json.loads(request(system, f"Question {number}"))
    return json.dumps({"request": body, **({"session_id": session} if session else {}), **around})


@pytest.fixture
def before(tmp_path: Path) -> Path:
    file = tmp_path / "before.jsonl"
    file.write_text(lines(*(logged(number, RULES) for number in range(6))))
    return file


def test_worse(before: Path, tmp_path: Path) -> None:
    after = tmp_path / "after.jsonl"
    after.write_text(lines(*(logged(number, f"Now: 10:0{number}\n{RULES}") for number in range(6))))
    assert gate(before, after).exit_code == 1
    found = facts(before, after)
    assert found["before"]["cacheable_share"] > 0.7
    assert found["after"]["cacheable_share"] == 0
    assert found["worse_requests"][0]["more_like_it"] == 4
    assert found["worse_requests"][0]["change"] is None
    assert found["grown_causes"][0]["detail"] == "VOLATILE_TIME"
    assert found["grown_causes"][0]["path"] == "messages[*].content"


def test_the_other_way_round_is_better(before: Path, tmp_path: Path) -> None:
    after = tmp_path / "after.jsonl"
    after.write_text(lines(*(logged(number, f"Now: 10:0{number}\n{RULES}") for number in range(6))))
    done = gate(after, before)
    assert done.exit_code == 0
    assert "rose by" in done.output
    assert facts(after, before)["grown_causes"] == []


def test_lifetimes_and_reports_count_for_nothing(before: Path, tmp_path: Path) -> None:
    """What is compared is what prompts allow, not what happened."""
    after = tmp_path / "after.jsonl"
    usage = {"usage": {"prompt_tokens": 2_000, "prompt_tokens_details": {"cached_tokens": 0}}}
    rows = [logged(n, RULES, timestamp=1_790_000_000 + n * 9_000, response=usage) for n in range(6)]
    after.write_text(lines(*rows))
    found = facts(before, after)
    assert found["fall_points"] == 0
    assert found["passed"]


def test_requests_of_other_traffic_are_not_matched_by_number(before: Path, tmp_path: Path) -> None:
    after = tmp_path / "after.jsonl"
    after.write_text(lines(*(logged(number, f"Now: 10:0{number}\n{RULES}") for number in range(5))))
    found = facts(before, after)
    assert found["worse_requests"] == []
    assert found["grown_causes"] != []


def test_but_by_session(tmp_path: Path) -> None:
    files = []
    for name, volatile in (("old", ""), ("new", "Now: 10:0{n}\n")):
        rows = [logged(n, volatile.format(n=n) + RULES, "s") for n in range(4 if name == "old" else 3)]
        files.append(tmp_path / f"{name}.jsonl")
        files[-1].write_text(lines(*rows))
    assert facts(*files)["worse_requests"] != []


def test_requests_that_cannot_be_read_are_told(before: Path, tmp_path: Path) -> None:
    after = tmp_path / "after.jsonl"
    after.write_text(before.read_text() + '{"messages": [7]}\n')
    found = facts(before, after)
    assert found["passed"]
    assert found["after"]["unread"] == 1
    assert any("1 requests can't be read" in note for note in found["notes"])


def test_trouble_is_exit_code_2(before: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.jsonl"
    empty.write_text("{}\n")
    for arguments in ([before], [before, tmp_path / "none"], [before, empty], []):
        done = gate(*arguments)
        assert done.exit_code == 2
        assert "Traceback" not in done.output
