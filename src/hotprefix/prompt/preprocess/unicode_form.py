"""Unicode: composed characters (NFC), so that equal letters are equal bytes."""

from __future__ import annotations

import re
import unicodedata

from hotprefix.prompt.preprocess.edit import Change, narrowed

_PIECE = re.compile(r"[\x00-\x7f\u4e00-\u9fff][^\x00-\x7f\u4e00-\u9fff]*|[^\x00-\x7f\u4e00-\u9fff]+")
"""ASCII and common ideographs never join what stands before them: a text can be normalised in pieces."""


def unicode_changes(text: str) -> list[Change]:
    """What NFC writes in another way."""
    if text.isascii() or unicodedata.is_normalized("NFC", text):
        return []
    changes = []
    for piece in _PIECE.finditer(text):
        found = piece.group()
        if len(found) == 1 and "\x00" <= found <= "\x7f":
            continue
        normal = unicodedata.normalize("NFC", found)
        if normal != found:
            changes.append(narrowed(piece.start(), found, normal))
    return changes
