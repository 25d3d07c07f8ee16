"""Files of a git repository at a revision, read without touching the working tree."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hotprefix.base.errors import HotprefixError

_SHORT = 10
_SECONDS = 120


class GitTrouble(HotprefixError):
    """Git is not there, or has not what was asked for; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A commit: as it was asked for, and its full id."""

    asked: str
    commit: str

    def __str__(self) -> str:
        short = self.commit[:_SHORT]
        return short if self.asked == self.commit else f"{self.asked} ({short})"


class Repository:
    """The repository that `folder` lies in. Raises `GitTrouble`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._git("rev-parse", "--git-dir")

    def revision(self, asked: str) -> Revision:
        """The commit that a branch, tag or id names. Raises `GitTrouble`."""
        found = self._try("rev-parse", "--verify", "--quiet", "--end-of-options", f"{asked}^{{commit}}")
        if found is None:
            raise GitTrouble(f"There is no revision {asked!r} here. {self._advice(asked)}")
        return Revision(asked, found.decode().strip())

    def fork(self, base: Revision, head: Revision) -> Revision | None:
        """Where `head` left `base`; None if git can't tell (other histories, or a shallow clone)."""
        found = self._try("merge-base", base.commit, head.commit)
        if found is None:
            return None
        commit = found.decode().strip()
        return base if commit == base.commit else Revision(f"where {head.asked} left {base.asked}", commit)

    @property
    def is_shallow(self) -> bool:
        """Whether older commits were left out when it was cloned."""
        return self._git("rev-parse", "--is-shallow-repository").strip() == b"true"

    def files(self, revision: Revision, paths: Sequence[str]) -> list[str]:
        """Paths from the root of all files below `paths`, sorted. `paths` are relative to the folder."""
        listed = self._git(
            "ls-tree", "-r", "-z", "--name-only", "--full-name", revision.commit, "--", *(paths or (".",))
        )
        return sorted(name for name in listed.decode("utf-8", "surrogateescape").split("\0") if name)

    def content(self, revision: Revision, path: str) -> bytes | None:
        """A file's bytes; None if there is no such file."""
        return self._try("cat-file", "blob", f"{revision.commit}:{path}")

    def _advice(self, asked: str) -> str:
        if self.is_shallow:
            return (
                "This is a shallow clone: fetch all of it (actions/checkout: fetch-depth: 0), or the branch "
                "with 'git fetch --depth=1 origin BRANCH' and compare with FETCH_HEAD."
            )
        remote, _, branch = asked.partition("/")
        return (
            f"Fetch it first, for example with 'git fetch {remote} {branch}'."
            if branch
            else "See 'git branch -a'."
        )

    def _git(self, *arguments: str) -> bytes:
        done = self._run(arguments)
        if done.returncode:
            told = done.stderr.decode("utf-8", "replace").strip().removeprefix("fatal: ")
            raise GitTrouble(f"git {arguments[0]} failed in {self._folder}: {told}")
        return done.stdout

    def _try(self, *arguments: str) -> bytes | None:
        done = self._run(arguments)
        return None if done.returncode else done.stdout

    def _run(self, arguments: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        command = ["git", "-C", str(self._folder), *arguments]
        try:
            return subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        except FileNotFoundError:
            raise GitTrouble(
                "git is not installed, or not on the PATH. Install it, or compare two logs."
            ) from None
        except subprocess.TimeoutExpired:
            raise GitTrouble(f"git {arguments[0]} took longer than {_SECONDS} s in {self._folder}.") from None
