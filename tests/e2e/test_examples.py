"""The examples do what they say."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e.server import Server

pytestmark = pytest.mark.model

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def run(server: Server, *command: str) -> str:
    direct = {"HOTPREFIX_URL": server.url, "NO_PROXY": "*", "no_proxy": "*"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=os.environ | direct
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def cached_and_prompt(shown: str) -> list[tuple[int, int]]:
    return [(int(a), int(b)) for a, b in re.findall(r"(\d+) of (\d+) prompt tokens cached", shown)]


def test_openai_chat(narrow: Server) -> None:
    shown = run(narrow, sys.executable, str(EXAMPLES / "openai_chat.py"))
    (first, prompt), (second, _) = cached_and_prompt(shown)
    assert first < 32
    assert second > prompt - 32
    assert all(int(ms) > 0 for ms in re.findall(r"TTFT (\d+) ms", shown))


def test_conversation(narrow: Server) -> None:
    turns = cached_and_prompt(run(narrow, sys.executable, str(EXAMPLES / "conversation.py")))
    assert len(turns) == 3
    for (_, before), (cached, _) in pairwise(turns):
        # More than the prompt of the turn before: the answer is reused as well.
        assert cached > before


@pytest.mark.skipif(not shutil.which("curl"), reason="needs curl")
def test_curl(narrow: Server) -> None:
    first, second = [json.loads("{" + line) for line in run(narrow, str(EXAMPLES / "curl.sh")).splitlines()]
    assert first["usage"]["prompt_tokens_details"]["cached_tokens"] < 32
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] == second["usage"]["prompt_tokens"]


def test_every_example_is_listed() -> None:
    listed = re.findall(r"\]\((\S+)\)", (EXAMPLES / "README.md").read_text(encoding="utf-8"))
    files = [path.name for path in EXAMPLES.iterdir() if path.suffix in (".py", ".sh")]
    folders = [f"{path.parent.name}/{path.name}" for path in EXAMPLES.glob("*/README.md")]
    ci = [str(path.relative_to(EXAMPLES)) for path in EXAMPLES.glob("ci/**/*") if path.is_file()]
    assert sorted(listed) == sorted([*files, *folders, *ci])
