"""A repository with prompts in it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

RULES = "\n".join(f"Rule {n}: goods of kind {n * 7} stand on shelf {n * 13}." for n in range(100))
CONTEXTS = [
    {"customer": f"C-{n * 7919}", "now": f"2031-04-05T10:0{n}:00", "user": f"Question {n}"} for n in range(5)
]


class Repo:
    """Commits what it is given."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(
            ["git", "-C", str(self.folder), *who, *arguments], check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, **files: str | None) -> str:
        """Files by name (`__` for `/`, `_DOT_` for a dot); None deletes. Returns the commit's id."""
        for name, content in files.items():
            path = self.folder / name.replace("__", "/").replace("_DOT_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            if content is None:
                path.unlink()
            else:
                path.write_text(content, encoding="utf-8")
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "change")
        return self.git("rev-parse", "HEAD")


def request(system: str = RULES, question: str = "Where?", **more: object) -> str:
    talk = [{"role": "system", "content": system}, {"role": "user", "content": question}]
    return json.dumps({"model": "qwen-plus", "messages": talk, **more})


def lines(*documents: str) -> str:
    return "\n".join(documents) + "\n"
