"""Writes the safe fixes of a file, again and again until there is nothing more to fix."""

from __future__ import annotations

import json
import os
import re
import tempfile
import tokenize
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

import yaml

from hotprefix.doctor.lint.data_file import DATA_SUFFIXES
from hotprefix.doctor.lint.edits import apply_fixes
from hotprefix.doctor.lint.finding import LintFinding

_MOST_PASSES = 20
_LINE = re.compile(r"[^\n]*\n|[^\n]+")

Check = Callable[[Path], Iterable[LintFinding]]


@dataclass(frozen=True, slots=True)
class FixedFile:
    """A file before and after; `count` fixes were made."""

    path: Path
    before: str
    after: str
    count: int

    @property
    def diff(self) -> str:
        """What changed, as `diff -u` shows it."""
        old, new = _LINE.findall(self.before), _LINE.findall(self.after)
        lines = unified_diff(old, new, f"a/{self.path}", f"b/{self.path}")
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def fixed(path: Path, check: Check) -> FixedFile | None:
    """The file as it would be; None if nothing in it can be fixed. The file itself is not touched.

    Each pass is checked anew on a copy beside it, so that fixes that touch one another are all made.
    """
    before = _read(path)
    if before is None or before.startswith("\ufeff"):
        return None  # positions are counted without the mark
    text, count = before, 0
    for _ in range(_MOST_PASSES):
        fixes = [finding.fix for finding in _checked(path, text, before, check) if finding.fix is not None]
        after, made = apply_fixes(text, fixes)
        if not made or after == text or not _is_sound(path, text, after):
            break
        text, count = after, count + made
    return FixedFile(path, before, text, count) if count else None


def write(file: FixedFile) -> None:
    """Put the fixed text in the place of the old one, whole or not at all. A link stays one."""
    place = file.path.resolve()
    handle, name = tempfile.mkstemp(dir=place.parent, prefix=".hotprefix-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(file.after)
        Path(name).chmod(place.stat().st_mode & 0o7777)
        Path(name).replace(place)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise


def _checked(path: Path, text: str, before: str, check: Check) -> list[LintFinding]:
    if text == before:
        return list(check(path))
    with tempfile.TemporaryDirectory(prefix="hotprefix-lint-") as folder:
        copy = Path(folder) / path.name
        with copy.open("w", encoding="utf-8", newline="") as stream:
            stream.write(text)
        return list(check(copy))


def _read(path: Path) -> str | None:
    """None for what is in another encoding than UTF-8, which is left as it is."""
    try:
        if path.suffix.lower() == ".py":
            with path.open("rb") as raw:
                if not tokenize.detect_encoding(raw.readline)[0].startswith("utf-8"):
                    return None
        with path.open(encoding="utf-8", newline="") as stream:
            return stream.read()
    except (UnicodeDecodeError, SyntaxError):
        return None


def _is_sound(path: Path, before: str, after: str) -> bool:
    """Whether a fixed file can still be read, where it could before."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".py":
            compile(after, str(path), "exec", dont_inherit=True)
        elif suffix in (".yaml", ".yml"):
            list(yaml.compose_all(after, yaml.SafeLoader))
        elif suffix in DATA_SUFFIXES:
            for line in after.split("\n") if _is_lines(before) else (after,):
                if line.strip():
                    json.loads(line)
    except (SyntaxError, ValueError, yaml.YAMLError):
        return False
    return True


def _is_lines(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False
