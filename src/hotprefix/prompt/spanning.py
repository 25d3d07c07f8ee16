"""Finds the content blocks of a request in its rendered prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hotprefix.prompt.chat import Message
from hotprefix.prompt.spans import ContentBlock

Render = Callable[[Sequence[Message]], str]

_OPEN, _CLOSE = "\ue0f0", "\ue0f1"
"""Private-use characters: no template looks at them, no tokenizer sees them."""


def block_ends(
    render: Render, text: str, messages: Sequence[Message], blocks: Sequence[Sequence[ContentBlock]]
) -> list[int]:
    """Where each block ends, in characters of `text`, which is `render(messages)`, rising.

    `blocks[i]` are the blocks of message i; their texts together are its content. The prompt is
    rendered once more with a mark behind each block. Where a template trims, so that marks move
    its text, blocks are found by their text instead, one after the other.
    """
    flat = [block for group in blocks for block in group]
    if any(_OPEN in block.text or _CLOSE in block.text for block in flat):
        return _ends_by_text(text, flat)
    marked = render(_with_marks(messages, blocks))
    ends = _ends_by_marks(marked, text, len(flat))
    return ends if ends is not None else _ends_by_text(text, flat)


def _with_marks(
    messages: Sequence[Message], blocks: Sequence[Sequence[ContentBlock]]
) -> list[dict[str, object]]:
    number = 0
    marked = []
    for message, group in zip(messages, blocks, strict=True):
        content = ""
        for block in group:
            content += f"{block.text}{_OPEN}{number}{_CLOSE}"
            number += 1
        marked.append(dict(message) | ({"content": content} if group else {}))
    return marked


def _ends_by_marks(marked: str, text: str, count: int) -> list[int] | None:
    """The marks' places in the text without them; None if they are not all there, once, in order."""
    ends: list[int] = []
    plain: list[str] = []
    size = at = 0
    for number in range(count):
        mark = f"{_OPEN}{number}{_CLOSE}"
        found = marked.find(mark, at)
        if found < 0:
            return None
        plain.append(marked[at:found])
        size += found - at
        ends.append(size)
        at = found + len(mark)
    plain.append(marked[at:])
    return ends if "".join(plain) == text else None


def _ends_by_text(text: str, blocks: Sequence[ContentBlock]) -> list[int]:
    ends: list[int] = []
    at = 0
    for block in blocks:
        wanted = block.text.strip()
        found = text.find(wanted, at) if wanted else at
        at = found + len(wanted) if found >= 0 else at
        ends.append(at)
    return ends
