"""Changes of a registry."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from hotprefix.doctor.prompts import BrokenRegistry, EditedRelease, PromptError, Status, open_registry
from hotprefix.doctor.prompts.edit import Facts, RegistryEditor
from hotprefix.doctor.prompts.split import moved
from tests.doctor.prompts.folders import DAY, two_arms


def test_versions_count_on_and_keep_their_files(tmp_path: Path) -> None:
    editor = RegistryEditor(tmp_path)
    assert editor.add("a", b"1", ".md", "2026-09", Facts(owner="me")).label == "a@2026-09"
    assert editor.add("a", b"2", ".json", None, Facts()).label == "a@2026-10"
    assert editor.add("b", b"3", ".txt", None, Facts()).label == "b@v1"
    assert open_registry(tmp_path).prompt("a").owner == "me"
    assert (tmp_path / "a" / "2026-10.json").read_bytes() == b"2"
    with pytest.raises(PromptError, match="is there already"):
        editor.add("a", b"4", ".txt", "2026-09", Facts())
    editor.add("a", b"5", ".txt", "final", Facts())
    with pytest.raises(PromptError, match="comes no number"):
        editor.add("a", b"6", ".txt", None, Facts())


@pytest.mark.parametrize(
    ("name", "suffix", "version"), [("../x", ".txt", None), ("a", ".exe", None), ("a", ".txt", "a/b")]
)
def test_names_that_lead_elsewhere_are_refused(
    tmp_path: Path, name: str, suffix: str, version: str | None
) -> None:
    with pytest.raises(PromptError):
        RegistryEditor(tmp_path / "prompts").add(name, b"x", suffix, version, Facts())
    assert not list(tmp_path.rglob("*.exe"))
    assert not (tmp_path / "x").exists()


def test_what_people_wrote_stays(tmp_path: Path) -> None:
    two_arms(tmp_path)
    file = tmp_path / "prompts.toml"
    file.write_text(
        "# ours, hands off\n" + file.read_text().replace("[prompts.greeting]", "[prompts.greeting] # why")
    )
    editor = RegistryEditor(tmp_path)
    editor.reviewed("greeting@v1", date(2026, 9, 1))
    editor.split("greeting", {"v1": 50, "v2": 50}, DAY)
    text = file.read_text()
    assert text.startswith("# ours, hands off\n")
    assert "[prompts.greeting] # why" in text
    assert open_registry(tmp_path).find("greeting@v1").reviewed == date(2026, 9, 1)


def test_new_weights_keep_the_salt(tmp_path: Path) -> None:
    before = open_registry(two_arms(tmp_path)).prompt("greeting").experiment
    after = RegistryEditor(tmp_path).split("greeting", {"v1": 80, "v2": 20}, date(2026, 9, 1)).experiment
    assert before is not None
    assert after is not None
    assert (after.salt, after.since) == (before.salt, DAY)
    share = moved([str(n) for n in range(5_000)], before.arms, after.arms, after.salt) / 5_000
    assert 0.08 < share < 0.12


def test_a_change_that_breaks_the_registry_is_taken_back(tmp_path: Path) -> None:
    two_arms(tmp_path)
    before = (tmp_path / "prompts.toml").read_bytes()
    with pytest.raises(BrokenRegistry, match="'v9', which does not exist"):
        RegistryEditor(tmp_path).split("greeting", {"v1": 1, "v9": 1}, DAY)
    assert (tmp_path / "prompts.toml").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == [".gitattributes", "greeting", "prompts.toml"]


def test_what_can_not_be_written_down_leaves_no_file(tmp_path: Path) -> None:
    two_arms(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    for name in ("greeting", "farewell"):
        with pytest.raises(BrokenRegistry, match=r"prompts\.toml is no registry .*\n.*mode") as caught:
            RegistryEditor(tmp_path).add(name, b"x", ".txt", None, Facts(mode="magic"))
        assert f"{tmp_path / 'prompts.toml'} is" in str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_drafts_are_no_arms(tmp_path: Path) -> None:
    two_arms(tmp_path)
    editor = RegistryEditor(tmp_path)
    editor.add("greeting", b"x", ".txt", None, Facts())
    with pytest.raises(BrokenRegistry, match="'v3', which is draft"):
        editor.split("greeting", {"v1": 1, "v3": 1}, DAY)


def test_retiring(tmp_path: Path) -> None:
    two_arms(tmp_path)
    editor = RegistryEditor(tmp_path)
    with pytest.raises(PromptError, match="arm of an experiment"):
        editor.retire("greeting@v2")
    editor.end("greeting")
    assert editor.retire("greeting@v2").status is Status.RETIRED
    assert open_registry(tmp_path).choose("greeting", "a").header == "greeting@v1"
    version = open_registry(tmp_path).find("greeting@v2")
    version.file.write_text("changed")
    with pytest.raises(EditedRelease):
        editor.release("greeting@v2", DAY)
    with pytest.raises(PromptError, match="no experiment"):
        editor.end("greeting")
