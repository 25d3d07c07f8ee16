"""Where the content blocks of a request lie in the rendered prompt."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ContentBlock:
    """One content block of a request, in rendering order: a string content, or one array element.

    `path` is its JSON path (`messages[2].content[0]`), `role` the message's (tools belong to the
    system message), `text` what the client sent.
    """

    path: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class BlockSpan:
    """A block and where it ends in the prompt: after `end_char` characters of the rendered text and
    after `end_token` tokens. Tokens that begin inside the block but end behind it are not counted."""

    block: ContentBlock
    end_char: int
    end_token: int


@dataclass(frozen=True, slots=True)
class SpannedPrompt:
    """A rendered prompt with its tokens and blocks; `spans` are in order and their ends never fall."""

    text: str
    token_ids: tuple[int, ...]
    spans: tuple[BlockSpan, ...]
