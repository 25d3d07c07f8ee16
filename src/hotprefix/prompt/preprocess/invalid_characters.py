"""Characters that no text has on purpose: control characters, lone surrogates, noncharacters."""

from __future__ import annotations

import re

from hotprefix.prompt.preprocess.edit import Change

_PLANES = "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17))
# Tab, LF and CR stay, and so does NEL (U+0085), which some systems write as a line end.
_INVALID = f"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef{_PLANES}"
_RUN = re.compile(f"\\A[\ufeff{_INVALID}]+|[{_INVALID}]+")


def invalid_character_changes(text: str) -> list[Change]:
    """Runs of such characters, and a byte order mark at the start; they are dropped."""
    return [Change(found.start(), found.group(), "") for found in _RUN.finditer(text)]
