"""Two revisions of a repository."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from hotprefix.app.cli import build_app
from tests.doctor.gate.support import CONTEXTS, RULES, Repo, lines, request

RUNNER = CliRunner()
TEMPLATE = f"{RULES}\nCustomer: {{{{ customer }}}}\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTPREFIX_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo(tmp_path / "repo")


@pytest.fixture
def contexts(tmp_path: Path) -> Path:
    file = tmp_path / "contexts.jsonl"
    file.write_text(lines(*map(json.dumps, CONTEXTS)))
    return file


def gate(repo: Repo, *arguments: str | Path, base: str = "HEAD~1") -> Result:
    return RUNNER.invoke(
        build_app(), ["gate", "--repo", str(repo.folder), "--base", base, *map(str, arguments)]
    )


def facts(repo: Repo, *arguments: str | Path, base: str = "HEAD~1") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gate(repo, *arguments, "--format", "json", base=base).output)
    return found


def test_a_clock_at_the_head_of_a_template_fails(repo: Repo, contexts: Path) -> None:
    repo.commit(system_DOT_md_DOT_j2=TEMPLATE)
    repo.commit(system_DOT_md_DOT_j2=f"# House\nReport time {{{{ now }}}}\n{TEMPLATE}")
    done = gate(repo, "--context", contexts)
    assert done.exit_code == 1
    assert "Failed: the cacheable share fell by" in done.output
    found = facts(repo, "--context", contexts)
    assert not found["passed"]
    assert found["before"]["cacheable_share"] > 0.7
    assert found["after"]["cacheable_share"] == 0
    assert found["before"]["requests"] == found["after"]["requests"] == 5
    [worse] = found["worse_requests"]
    assert worse["request"] == "system.md.j2:1", "the first line that changed"
    assert worse["more_like_it"] == 3
    assert worse["why"]["reason"] == "SYSTEM_CHANGED"
    assert worse["why"]["detail"] == "VOLATILE_TIME"
    assert worse["change"]["path"] == "messages[0].content"
    assert "Report·time" in worse["change"]["after"]
    [cause] = found["grown_causes"]
    assert (cause["reason"], cause["lost_before"]) == ("SYSTEM_CHANGED", 0)
    assert cause["lost_after"] > 4 * 1_900


def test_a_change_that_costs_nothing_passes(repo: Repo, contexts: Path) -> None:
    repo.commit(system_DOT_md_DOT_j2=TEMPLATE)
    repo.commit(system_DOT_md_DOT_j2=TEMPLATE.replace("Rule 1:", "Rule one:"))
    done = gate(repo, "--context", contexts)
    assert done.exit_code == 0
    assert "Passed" in done.output


def test_the_limit_decides(repo: Repo, contexts: Path) -> None:
    repo.commit(system_DOT_md_DOT_j2=TEMPLATE)
    cut = "\n".join(RULES.split("\n")[:90])
    repo.commit(
        system_DOT_md_DOT_j2=f"{cut}\nCustomer: {{{{ customer }}}}\n" + "\n".join(RULES.split("\n")[90:])
    )
    fall = facts(repo, "--context", contexts)["fall_points"]
    assert 2 < fall < 20
    assert gate(repo, "--context", contexts, "--limit", f"{fall - 0.1}%").exit_code == 1
    assert gate(repo, "--context", contexts, "--limit", f"{fall + 0.1}").exit_code == 0
    lost = facts(repo, "--context", contexts)["lost_tokens"]
    assert gate(repo, "--context", contexts, "--min-tokens", str(lost + 1)).exit_code == 0
    assert gate(repo, "--context", contexts, "--min-tokens", str(lost)).exit_code == 1


def test_one_request_counts_as_sent_twice(repo: Repo) -> None:
    repo.commit(prompts__a_DOT_json=request())
    repo.commit(prompts__a_DOT_json=request(RULES[:1_500]))
    found = facts(repo, "prompts")
    assert found["before"]["requests"] == 2
    assert found["after"]["cacheable_share"] == 0, "below the minimum of 1,024 tokens"
    assert not found["passed"]
    assert found["worse_requests"][0]["why"]["reason"] == "BELOW_MIN"
    assert any("sent twice" in note for note in found["notes"])


def test_a_marker_that_was_dropped_fails(repo: Repo) -> None:
    system = [{"type": "text", "text": RULES, "cache_control": {"type": "ephemeral"}}]
    body = {"model": "claude-sonnet-4-6", "system": system, "messages": [{"role": "user", "content": "?"}]}
    repo.commit(a_DOT_json=json.dumps(body))
    bare = body | {"system": [{"type": "text", "text": RULES}]}
    repo.commit(a_DOT_json=json.dumps(bare))
    found = facts(repo)
    assert not found["passed"]
    assert found["worse_requests"][0]["why"]["reason"] == "NO_MARKER"
    assert found["worse_requests"][0]["change"] is None


def test_all_kinds_of_files(repo: Repo, contexts: Path) -> None:
    files = {
        "chat_DOT_jsonl": lines(request(question="A"), request(question="B")),
        "chat_DOT_yaml": "model: qwen-plus\nmessages:\n- {role: user, content: Hello}\n",
        "chat_DOT_json_DOT_j2": '{"messages": [{"role": "user", "content": {{ user | tojson }}}]}',
        "prompt_DOT_txt": RULES,
        "part_DOT_jinja": "{% include 'prompt.txt' %}",
        "other_DOT_json": '{"name": "no request"}',
        "build_DOT_py": "print(1)",
    }
    repo.commit(**files)
    repo.commit(**files | {"chat_DOT_jsonl": lines(request(question="A"), request(question="C"))})
    found = facts(repo, "--context", contexts)
    assert found["passed"]
    assert found["before"]["requests"] == 2 + 2 + 5 + 5 + 5
    assert (found["missing_files"], found["new_files"]) == ([], [])


def test_a_prompt_that_stops_being_shared_is_found_among_others(repo: Repo) -> None:
    repo.commit(a_DOT_jsonl=lines(request(), request()), b_DOT_jsonl=lines(request(question="Q"), request()))
    changed = [request(f"Build 2031-04-0{n}\n{RULES}") for n in (1, 2)]
    repo.commit(a_DOT_jsonl=lines(*changed))
    found = facts(repo)
    assert found["worse_requests"][0]["request"] == "a.jsonl:2"
    assert found["worse_requests"][0]["change"]["path"] == "messages[0].content"


def test_files_of_one_side_are_named_and_left_out(repo: Repo) -> None:
    repo.commit(a_DOT_json=request(), b_DOT_json=request(RULES * 2))
    repo.commit(b_DOT_json=None, c_DOT_json=request("Short."))
    found = facts(repo)
    assert found["passed"]
    assert (found["missing_files"], found["new_files"]) == (["b.json"], ["c.json"])
    assert found["before"]["requests"] == 2


def test_main_may_have_moved_on(repo: Repo) -> None:
    """The base is where the branch left it, so what main did meanwhile is not the branch's fault."""
    repo.commit(a_DOT_json=request(RULES[:1_500]))
    repo.git("checkout", "-q", "-b", "feature")
    repo.commit(note_DOT_rst="x")
    repo.git("checkout", "-q", "main")
    repo.commit(a_DOT_json=request())
    found = facts(repo, "--head", "feature", base="main")
    assert found["passed"]
    assert "where feature left main" in found["before"]["name"]


def test_a_folder_below_the_root(repo: Repo) -> None:
    repo.commit(team__prompts__a_DOT_json=request(), other__b_DOT_json=request())
    repo.commit(team__prompts__a_DOT_json=request(RULES[:1_500]))
    done = RUNNER.invoke(
        build_app(),
        ["gate", "--repo", str(repo.folder / "team"), "--base", "HEAD~1", "prompts", "-f", "json"],
    )
    found = json.loads(done.output)
    assert found["before"]["requests"] == 2
    assert found["worse_requests"][0]["request"] == "team/prompts/a.json:1"


def test_redacted(repo: Repo, contexts: Path) -> None:
    repo.commit(system_DOT_md_DOT_j2=TEMPLATE)
    repo.commit(system_DOT_md_DOT_j2=f"Report time {{{{ now }}}}\n{TEMPLATE}")
    for form in ("terminal", "json", "github"):
        done = gate(repo, "--context", contexts, "--redact", "--format", form)
        assert done.exit_code == 1
        assert "goods" not in done.output
        assert "Report" not in done.output


def test_github(repo: Repo, contexts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    repo.commit(system_DOT_md_DOT_j2=TEMPLATE)
    repo.commit(
        system_DOT_md_DOT_j2=f"# House\n{TEMPLATE}\nOn: {{{{ now }}}}\n".replace("Rule 3:", "{{ now }}", 1)
    )
    done = gate(repo, "--context", contexts, "--format", "github")
    commands = done.output.splitlines()
    assert all(re.match(r"::(error|notice) ", command) for command in commands)
    assert commands[0].startswith("::error file=system.md.j2,line=1,title=Cacheable share fell::")
    assert commands[-1].startswith("::error title=hotprefix gate::Failed")
    assert "%25" in commands[-1]
    text = summary.read_text(encoding="utf-8")
    assert text.startswith("### ❌ Cacheable share of prompts")
    assert "| before: HEAD~1 (" in text
    assert "```diff\n- " in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", line)) in (6,), line


def test_a_summary_for_a_pull_request(repo: Repo, tmp_path: Path) -> None:
    repo.commit(a_DOT_json=request())
    repo.commit(a_DOT_json=request(RULES + " And more."))
    out = tmp_path / "summary.md"
    assert gate(repo, "--summary", out).exit_code == 0
    assert out.read_text(encoding="utf-8").startswith("### ✅")


def test_trouble_is_exit_code_2(repo: Repo, contexts: Path, tmp_path: Path) -> None:
    repo.commit(a_DOT_json=request(), t_DOT_j2="{{ customer }}", bad__x_DOT_j2="{% if %}")
    repo.commit(bad__y_DOT_json='{"messages":')
    told = {
        ("a.json", "--head", "nowhere"): "There is no revision 'nowhere'",
        ("t.j2",): "'customer' is undefined. Give its value with --context",
        ("bad/x.j2",): "bad/x.j2:1 is no Jinja",
        ("none",): "is both in HEAD~1",
        ("a.json", "--limit", "lots"): "no number of percentage points",
        ("a.json", "--context", str(tmp_path / "x.json")): "does not exist",
    }
    for arguments, said in told.items():
        done = gate(repo, *arguments)
        assert done.exit_code == 2, arguments
        assert said in re.sub(r"[\s│]+", " ", done.stderr), arguments
    repo.commit(bad__y_DOT_json='{"input":')
    done = gate(repo, "bad/y.json")
    assert done.exit_code == 2
    assert "At HEAD~1" in done.stderr
    assert "bad/y.json:1" in done.stderr


def test_no_repository_no_git_and_a_shallow_clone(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.commit(a_DOT_json=request())
    repo.commit(a_DOT_json=request(RULES[:1_500]))
    shallow = Repo.__new__(Repo)
    shallow.folder = tmp_path / "shallow"
    repo.git("clone", "-q", "--depth", "1", f"file://{repo.folder}", str(shallow.folder))
    done = gate(shallow)
    assert done.exit_code == 2
    assert "fetch-depth: 0" in done.stderr
    shallow.git("fetch", "-q", "--depth", "1", "origin", repo.git("rev-parse", "HEAD~1"))
    done = gate(shallow, base="FETCH_HEAD")
    assert done.exit_code == 1, "both revisions are there, though not what is between them"
    assert "can't tell where HEAD" in done.output
    bare = tmp_path / "plain"
    bare.mkdir()
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    done = RUNNER.invoke(build_app(), ["gate", "--repo", str(bare), "--base", "main"])
    assert done.exit_code == 2
    assert "not a git repository" in done.stderr
    monkeypatch.setenv("PATH", str(bare))
    done = gate(repo)
    assert done.exit_code == 2
    assert "git is not installed" in done.stderr


def test_templates_include_what_lies_beside_them_or_above(repo: Repo, contexts: Path) -> None:
    repo.commit(
        prompts__desk__system_DOT_j2="{% include 'tone.j2' %}{% include 'shared/rules.j2' %}",
        prompts__desk__tone_DOT_j2="Be kind.",
        prompts__shared__rules_DOT_j2=RULES,
    )
    repo.commit(prompts__shared__rules_DOT_j2=f"{{{{ now }}}} {RULES}")
    found = facts(repo, "prompts/desk/system.j2", "--context", contexts)
    assert (found["before"]["cacheable_share"] > 0.7, found["after"]["cacheable_share"]) == (True, 0)


def test_files_of_other_programs_are_passed_over(repo: Repo) -> None:
    repo.commit(a_DOT_json=request(), tsconfig_DOT_json="{ // a comment\n}", x_DOT_yaml="a: !Ref B\nb: [")
    repo.commit(a_DOT_json=request(RULES + "More."))
    assert facts(repo)["passed"]


def test_a_request_that_is_none_any_more_is_no_pass(repo: Repo) -> None:
    repo.commit(a_DOT_jsonl=lines(request(), request(question="B")))
    broken = json.loads(request(question="B"))
    broken["messages"][1] = "Where?"
    repo.commit(a_DOT_jsonl=lines(request(), json.dumps(broken)))
    done = gate(repo)
    assert done.exit_code == 2
    assert "a request is none any more: a.jsonl:2" in done.stderr


def test_a_revision_is_never_an_option(repo: Repo) -> None:
    repo.commit(a_DOT_json=request())
    done = gate(repo, base="--output=/tmp/x")
    assert done.exit_code == 2
    assert "There is no revision '--output=/tmp/x'" in done.stderr
