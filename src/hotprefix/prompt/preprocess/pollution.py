"""Pollution: long runs of one character, which fill a prompt and say nothing."""

from __future__ import annotations

import re

from hotprefix.prompt.preprocess.edit import Change
from hotprefix.prompt.preprocess.markdown import free_spans

_LEAST = 6
_KEPT = 3
_RUN = re.compile(rf"([-=+])\1{{{_LEAST - 1},}}")
_DECORATION = re.compile(rf"([*_])\1{{{_LEAST - 1},}}")


def pollution_changes(text: str) -> list[Change]:
    """Runs of six or more `-`, `=` or `+` become three, and lines of nothing but `*` or `_` likewise.

    A run of `*` or `_` inside a line may stand for hidden digits or a blank to fill in, and is kept.
    """
    if not _RUN.search(text) and not _DECORATION.search(text):
        return []
    changes = []
    for start, end in free_spans(text):
        changes += [_shortened(found) for found in _RUN.finditer(text, start, end)]
        whole = _DECORATION.fullmatch(text, start, end)
        is_line = text[start - 1 : start] in ("", "\n") and text[end : end + 1] in ("", "\n")
        if whole is not None and is_line:
            changes.append(_shortened(whole))
    return changes


def _shortened(found: re.Match[str]) -> Change:
    return Change(found.start() + _KEPT, found.group()[_KEPT:], "")
