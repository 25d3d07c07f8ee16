"""Line ends: CR LF and CR become LF."""

from __future__ import annotations

import re

from hotprefix.prompt.preprocess.edit import Change

_CARRIAGE_RETURN = re.compile(r"\r\n?")


def line_end_changes(text: str) -> list[Change]:
    """Every line end that is not a bare LF."""
    if "\r" not in text:
        return []
    return [Change(found.start(), found.group(), "\n") for found in _CARRIAGE_RETURN.finditer(text)]
