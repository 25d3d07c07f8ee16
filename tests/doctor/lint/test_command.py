"""`hotprefix lint` as it is called."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from hotprefix.doctor.lint.rule import rules
from tests.doctor.lint.support import RULES, chat, write

BAD = chat(f"Now: 09:14\n{RULES}", "Where?")
NULL = chat(RULES, "Where?")
NULL["messages"][0]["cache_control"] = None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOTPREFIX_HOME", str(tmp_path / "home"))
    return tmp_path


def lint(*args: str) -> Result:
    return CliRunner().invoke(build_app(), ["lint", *args])


def found(result: Result) -> list[str]:
    return [one["rule"] for one in json.loads(result.stdout)["findings"]]


def test_exit_codes(folder: Path) -> None:
    write(folder, [chat(RULES, "Where?")], "good.jsonl")
    write(folder, [BAD], "bad.jsonl")
    (folder / "broken.json").write_text('{"messages": [', encoding="utf-8")
    assert lint("good.jsonl").exit_code == 0
    assert lint("bad.jsonl").exit_code == 1
    assert lint("bad.jsonl", "--fail-on", "error").exit_code == 0
    assert lint("bad.jsonl", "--fail-on", "never").exit_code == 0
    assert lint("broken.json").exit_code == 2
    assert lint("bad.jsonl", "broken.json", "--fail-on", "never").exit_code == 2
    assert lint("bad.jsonl", "--select", "HP9999").exit_code == 2
    assert lint("bad.jsonl", "--profile", "nobody").exit_code == 2
    assert lint("nothing.jsonl").exit_code == 2
    assert lint("--no-such-option").exit_code == 2


def test_folders_are_searched(folder: Path) -> None:
    for name in ("sub", ".git", "node_modules"):
        (folder / name).mkdir()
        write(folder / name, [BAD])
    (folder / "notes.txt").write_text("Now: 09:14", encoding="utf-8")
    (folder / "package.json").write_text('{"name": "x"}', encoding="utf-8")
    (folder / "chart.yaml").write_text("name: {{ .Values.name }}\n", encoding="utf-8")
    result = lint("--format", "json")
    assert [one["file"] for one in json.loads(result.stdout)["findings"]] == ["sub/requests.jsonl"]
    assert lint("--exclude", "sub/*").exit_code == 0


def test_rules_are_chosen(folder: Path) -> None:
    write(folder, [chat("Now: 09:14\nShort.", "Where?")])
    assert sorted(found(lint("--format", "json"))) == ["HP101", "HP202"]
    assert found(lint("--format", "json", "--select", "HP1")) == ["HP101"]
    assert sorted(found(lint("--format", "json", "--select", "volatile-time,HP2"))) == ["HP101", "HP202"]
    assert found(lint("--format", "json", "--ignore", "HP101")) == ["HP202"]


def test_settings_of_a_project(folder: Path) -> None:
    (folder / "old").mkdir()
    for place in (folder, folder / "old"):
        write(place, [BAD])
    table = """
[tool.hotprefix.lint]
ignore = ["HP202"]
lang = "zh"
fail-on = "error"
[tool.hotprefix.lint.per-file-ignores]
"old/*" = ["volatile-time"]
"""
    (folder / "pyproject.toml").write_text(table, encoding="utf-8")
    result = lint("--format", "json")
    facts = json.loads(result.stdout)
    assert [(one["file"], one["rule"]) for one in facts["findings"]] == [("requests.jsonl", "HP101")]
    assert "固定部分" in facts["findings"][0]["message"]
    assert result.exit_code == 0
    assert lint("--fail-on", "warning").exit_code == 1  # options go before the file
    (folder / "pyproject.toml").write_text("[tool.hotprefix.lint]\nignored = []\n", encoding="utf-8")
    result = lint()
    assert result.exit_code == 2
    assert "ignored is no key" in result.stderr and "per-file-ignores" in result.stderr


def test_yaml_comments_switch_rules_off(folder: Path) -> None:
    lines = "\n".join(f"      {line}" for line in RULES.splitlines())
    text = f"model: qwen-plus\nmessages:\n  - role: system\n    content: |\n      Now: 09:14\n{lines}\n"
    text += "  - {role: user, content: x}\n"
    (folder / "a.yaml").write_text(text, encoding="utf-8")
    assert found(lint("--format", "json")) == ["HP101"]
    (folder / "a.yaml").write_text("# hotprefix: ignore-file[HP101]\n" + text, encoding="utf-8")
    assert found(lint("--format", "json")) == []


def test_diff_shows_and_fix_writes(folder: Path) -> None:
    path = write(folder, [NULL], "a.jsonl")
    before = path.read_text(encoding="utf-8")
    shown = lint("--diff")
    assert shown.exit_code == 1
    assert shown.stdout.startswith("--- a/a.jsonl\n+++ b/a.jsonl\n")
    assert path.read_text(encoding="utf-8") == before
    fixed = lint("--fix", "--format", "json")
    assert fixed.exit_code == 0
    assert json.loads(fixed.stdout)["findings"] == []
    assert "Fixed 1 in 1 files." in fixed.stderr
    assert json.loads(path.read_text(encoding="utf-8")) == chat(RULES, "Where?")
    assert lint("--diff").exit_code == 0


def test_output_goes_to_a_file(folder: Path) -> None:
    write(folder, [BAD])
    for form in ("sarif", "json", "github", "terminal"):
        result = lint("--format", form, "--output", "out.txt")
        assert (result.exit_code, result.stdout) == (1, "")
        assert "HP101" in (folder / "out.txt").read_text(encoding="utf-8")


def test_rules_are_listed(folder: Path) -> None:
    listed = json.loads(lint("--rules", "--format", "json").stdout)
    assert [one["id"] for one in listed] == list(rules())
    assert "volatile-time" in lint("--rules").stdout


def test_the_articles_checklist(folder: Path) -> None:
    write(folder, [chat(RULES, "Where?", temperature=0, top_p=0.1, max_tokens=64)], "good.jsonl")
    assert lint("good.jsonl", "--profile", "dashscope-articles").stdout.count("✓") == 7
    write(folder, [BAD], "bad.jsonl")
    result = lint("bad.jsonl", "--profile", "dashscope-articles", "--lang", "zh")
    assert "✗ 提示词是否完全固定" in result.stdout


def test_help_teaches(folder: Path) -> None:
    text = " ".join(lint("--help").stdout.split())
    for word in (
        "hotprefix lint src prompts",
        "ignore[HP101]",
        "[tool.hotprefix.lint]",
        "Exit codes",
        "--diff",
        "sarif",
    ):
        assert word in text
    assert text.count("[tool.hotprefix.lint]") == 2  # of --config as well: brackets are no markup
