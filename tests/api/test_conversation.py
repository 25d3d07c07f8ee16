"""Conversations as they are built."""

from __future__ import annotations

from hotprefix.api.conversation import Conversation
from hotprefix.modes.marker import Marker
from hotprefix.prompt.spans import ContentBlock


class Untouchable(list[ContentBlock]):
    """What is not to be looked at again."""

    def __len__(self) -> int:
        raise AssertionError("a message was counted once more")


def block(path: str) -> ContentBlock:
    return ContentBlock(path, "user", "x")


def test_blocks_are_numbered_over_all_messages() -> None:
    conversation = Conversation()
    conversation.add({"role": "user"}, [(block("a"), None), (block("b"), "5m")])
    conversation.add({"role": "user"}, [(block("c"), "1h")])
    assert conversation.markers == [Marker(1, "5m", "b.cache_control"), Marker(2, "1h", "c.cache_control")]
    more = Conversation(blocks=[[block("a")], [block("b")]])
    more.add({"role": "user"}, [(block("c"), "5m")])
    assert more.markers == [Marker(2, "5m", "c.cache_control")]


def test_a_message_is_not_counted_again_with_every_one_behind_it() -> None:
    """Else ten thousand messages would hold up all other requests for seconds."""
    conversation = Conversation()
    conversation.add({"role": "user"}, [(block("a"), None)])
    conversation.blocks[0] = Untouchable(conversation.blocks[0])
    conversation.add({"role": "user"}, [(block("b"), "5m")])
    assert conversation.markers == [Marker(1, "5m", "b.cache_control")]
