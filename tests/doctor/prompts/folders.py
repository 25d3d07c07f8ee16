"""Folders of prompts for tests."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from hotprefix.doctor.prompts.edit import Facts, RegistryEditor

DAY = date(2026, 3, 2)
RULES = "Answer in one sentence. Name the room and the hour. " * 120
"""Some 1,300 tokens."""


def two_arms(folder: Path, texts: tuple[str, str] = (RULES, RULES + "Be kind."), **facts: str) -> Path:
    """`greeting` with v1 and v2 released, 90 to 10."""
    editor = RegistryEditor(folder)
    for text in texts:
        added = editor.add("greeting", text.encode(), ".txt", None, Facts(**facts))
        editor.release(added.label, DAY)
    editor.split("greeting", {"v1": 90, "v2": 10}, DAY)
    return folder
