"""A prompt before it is rendered: what the steps read and write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hotprefix.prompt.chat import Message, Tool
from hotprefix.prompt.spans import ContentBlock


@dataclass(frozen=True, slots=True)
class Draft:
    """`blocks[i]` are the content blocks of `messages[i]`; their texts together are its content."""

    messages: tuple[Message, ...]
    blocks: tuple[tuple[ContentBlock, ...], ...]
    tools: tuple[Tool, ...] = ()

    def with_texts(self, texts: Mapping[str, str]) -> Draft:
        """The draft with the text of some blocks replaced, by path."""
        messages, blocks = list(self.messages), list(self.blocks)
        for number, group in enumerate(self.blocks):
            if any(block.path in texts for block in group):
                blocks[number] = tuple(
                    replace(block, text=texts[block.path]) if block.path in texts else block
                    for block in group
                )
                content = "".join(block.text for block in blocks[number])
                messages[number] = {**self.messages[number], "content": content}
        return replace(self, messages=tuple(messages), blocks=tuple(blocks))
