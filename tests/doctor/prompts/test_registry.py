"""Folders of prompts: read, chosen from, pinned."""

from __future__ import annotations

import subprocess
import warnings
from pathlib import Path

import pytest

from hotprefix.doctor.prompts import (
    ArmsPartEarly,
    BrokenRegistry,
    EditedRelease,
    PromptError,
    Status,
    UnknownPrompt,
    open_registry,
)
from hotprefix.doctor.prompts.edit import Facts, RegistryEditor
from tests.doctor.prompts.folders import DAY, RULES, two_arms

EXACT = "﻿Zwei\r\nZeilen \t\nund é, kein Ende".encode()


def test_texts_are_returned_to_the_byte(tmp_path: Path) -> None:
    editor = RegistryEditor(tmp_path / "prompts")
    editor.add("exact", EXACT, ".md", None, Facts())
    editor.release("exact@v1", DAY)
    found = open_registry(tmp_path / "prompts").text("exact")
    assert found.data == EXACT
    assert found.text == EXACT.decode()
    assert found.text.encode() == EXACT
    assert found.header == "exact@v1"
    assert (tmp_path / "prompts" / "exact" / "v1.md").read_bytes() == EXACT


def test_git_keeps_line_ends_whatever_it_is_told(tmp_path: Path) -> None:
    editor = RegistryEditor(tmp_path / "prompts")
    editor.add("exact", EXACT, ".md", None, Facts())
    editor.release("exact@v1", DAY)

    def git(*words: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "core.autocrlf=true")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("add", ".")
    git("commit", "-qm", "prompts")
    (tmp_path / "prompts" / "exact" / "v1.md").unlink()
    git("checkout", "--", "prompts")
    assert open_registry(tmp_path / "prompts").text("exact").data == EXACT


def test_an_edited_release_is_an_error_and_an_edited_draft_is_not(tmp_path: Path) -> None:
    two_arms(tmp_path)
    RegistryEditor(tmp_path).add("greeting", b"a draft", ".txt", None, Facts())
    registry = open_registry(tmp_path)
    draft = registry.find("greeting@v3")
    assert draft.status is Status.DRAFT
    draft.file.write_text("another draft")
    assert registry.text("greeting@v3").text == "another draft"
    pinned = registry.find("greeting@v1").file
    pinned.write_text(pinned.read_text() + " ")
    with pytest.raises(EditedRelease, match=r"v1\.txt was edited after greeting@v1 was released"):
        registry.text("greeting@v1")
    assert [type(error) for error in registry.verify()] == [EditedRelease]


def test_choosing_is_stable_by_weight_and_tells_the_version(tmp_path: Path) -> None:
    registry = open_registry(two_arms(tmp_path))
    chosen = {unit: registry.choose("greeting", f"u{unit}") for unit in range(2_000)}
    assert {unit: registry.choose("greeting", f"u{unit}") for unit in range(2_000)} == chosen
    second = sum(one.version.name == "v2" for one in chosen.values())
    assert 140 < second < 260
    assert {one.header for one in chosen.values()} == {"greeting@v1", "greeting@v2"}
    assert {one.text for one in chosen.values()} == {RULES, RULES + "Be kind."}


def test_without_an_experiment_the_newest_release_is_chosen(tmp_path: Path) -> None:
    two_arms(tmp_path)
    RegistryEditor(tmp_path).end("greeting")
    assert open_registry(tmp_path).choose("greeting", "anybody").header == "greeting@v2"


def test_arms_that_part_early_are_warned_of_once(tmp_path: Path) -> None:
    registry = open_registry(two_arms(tmp_path, ("Hello! " + RULES, "Good day! " + RULES)))
    with pytest.warns(ArmsPartEarly, match="v2 has to stay in the cache by 10%") as warned:
        registry.choose("greeting", "a")
        registry.choose("greeting", "b")
    assert len(warned) == 1
    assert warned[0].filename == __file__


def test_arms_that_share_enough_are_not_warned_of(tmp_path: Path) -> None:
    registry = open_registry(two_arms(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        registry.choose("greeting", "a")
    assert registry.cautions("greeting") == ()


def test_how_much_is_enough_follows_mode_and_model(tmp_path: Path) -> None:
    texts = (RULES[:3_000] + "A", RULES[:3_000] + "B")
    implicit = open_registry(two_arms(tmp_path / "a", texts))
    explicit = open_registry(two_arms(tmp_path / "b", texts, mode="explicit"))
    assert implicit.cautions("greeting") == ()
    assert "fewer than the 1,024" in explicit.cautions("greeting")[0]


def test_what_is_unknown_lists_what_is_known(tmp_path: Path) -> None:
    registry = open_registry(two_arms(tmp_path))
    with pytest.raises(UnknownPrompt, match="Prompts: greeting"):
        registry.text("farewell")
    with pytest.raises(UnknownPrompt, match="Versions: v1, v2"):
        registry.text("greeting@v9")
    RegistryEditor(tmp_path).add("farewell", b"Bye", ".txt", None, Facts())
    with pytest.raises(UnknownPrompt, match="no released version"):
        open_registry(tmp_path).choose("farewell", "a")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[prompts.greeting\n", "is no TOML"),
        ("[prompts.greeting]\nowners = 'x'\n", "prompts.greeting.owners"),
        ("[prompts.greeting.versions.v1]\nstatus = 'released'\n", "needs its digest"),
        ("[prompts.greeting.versions.v7]\n", "there is no file"),
        ("[prompts.greeting.experiment]\narms = {v1 = 1}\n", "arms"),
        ("[prompts.greeting.experiment]\narms = {v1 = 1, v2 = -1}\n", "arms.v2"),
        ("[prompts.greeting.experiment]\narms = {v1 = 1, v2 = 1}\n", "an arm of the experiment"),
    ],
)
def test_a_broken_registry_says_where(tmp_path: Path, content: str, told: str) -> None:
    two_arms(tmp_path)
    (tmp_path / "prompts.toml").write_text(content)
    with pytest.raises(BrokenRegistry, match=told):
        open_registry(tmp_path)


def test_files_that_are_no_versions(tmp_path: Path) -> None:
    folder = two_arms(tmp_path) / "greeting"
    (folder / "notes.rst").write_text("not a prompt")
    assert list(open_registry(tmp_path).prompt("greeting").versions) == ["v1", "v2"]
    (folder / "v2.md").write_text("twice")
    with pytest.raises(BrokenRegistry, match="one version"):
        open_registry(tmp_path)
    (folder / "v2.md").rename(folder / "v 3.md")
    with pytest.raises(BrokenRegistry, match="names of versions"):
        open_registry(tmp_path)
    with pytest.raises(BrokenRegistry, match="There is no folder"):
        open_registry(tmp_path / "nowhere")


def test_a_text_that_is_no_text(tmp_path: Path) -> None:
    with pytest.raises(PromptError, match="no UTF-8"):
        RegistryEditor(tmp_path).add("a", b"\xff\xfe", ".txt", None, Facts())
    two_arms(tmp_path)
    (tmp_path / "greeting" / "v3.txt").write_bytes(b"\xff")
    with pytest.raises(BrokenRegistry, match="no UTF-8 text: byte 0"):
        open_registry(tmp_path).text("greeting@v3")
