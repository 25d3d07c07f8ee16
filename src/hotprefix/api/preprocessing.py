"""Pre-processing of a conversation: its messages, blocks and tools, with the markers kept in place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hotprefix.api.conversation import Conversation
from hotprefix.base.errors import ContextLengthExceeded
from hotprefix.engine.front import ServedModel
from hotprefix.modes.marker import Marker
from hotprefix.prompt.preprocess.catalogue import StepName, Steps
from hotprefix.prompt.preprocess.draft import Draft
from hotprefix.prompt.preprocess.pipeline import Report
from hotprefix.prompt.preprocess.volatile_headers import load_header_patterns
from hotprefix.prompt.segments import encode_for
from hotprefix.prompt.spans import ContentBlock

PREPROCESSED_HEADER = "x-hotprefix-preprocessed"
_CHARACTERS_PER_TOKEN = 64
"""For each token of the context so many are looked through: every change is recorded, and a text can be
nothing but changes."""
_ANSWER_SHARE = 8
"""One eighth of the context is left for the answer when a conversation is truncated."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is rendered, and what was done to it. Without steps it holds the very objects that came in."""

    conversation: Conversation
    tools: Sequence[Mapping[str, Any]]
    report: Report


class Preprocessing:
    """Runs the steps that are asked for. Safe on any thread."""

    def __init__(self, model: ServedModel) -> None:
        limit = model.context_length - model.context_length // _ANSWER_SHARE
        self._limit = limit
        self._most = _CHARACTERS_PER_TOKEN * model.context_length
        self._tokenizer = model.tokenizer
        self._headers = load_header_patterns()

    def conversation(
        self,
        names: Sequence[StepName],
        conversation: Conversation,
        tools: Sequence[Mapping[str, Any]],
        tenant: str,
    ) -> Prepared:
        """A conversation of `tenant`; markers whose message was dropped are told in its warnings.

        Raises `ContextLengthExceeded` for one that is far too long to be looked through.
        """
        if not names:
            return Prepared(conversation, tools, Report())
        self._require(sum(len(block.text) for group in conversation.blocks for block in group), "messages")
        blocks = tuple(tuple(group) for group in conversation.blocks)
        before = Draft(tuple(conversation.messages), blocks, tuple(tools))
        after, report = self._steps(tenant).pipeline(names).run(before)
        if after is before:
            return Prepared(conversation, tools, report)
        done = Conversation(
            messages=[dict(message) for message in after.messages],
            blocks=[list(group) for group in after.blocks],
            warnings=conversation.warnings,
            is_begun=conversation.is_begun,
        )
        done.markers = _moved(conversation, done)
        return Prepared(done, after.tools, report)

    def text(self, names: Sequence[StepName], text: str, path: str, tenant: str) -> tuple[str, Report]:
        """A raw prompt of `tenant`, as one block of a user's."""
        self._require(len(text), path)
        block = ContentBlock(path, "user", text)
        before = Draft(({"role": "user", "content": text},), ((block,),))
        after, report = self._steps(tenant).pipeline(names).run(before)
        return (text if after is before else after.blocks[0][0].text), report

    def _require(self, characters: int, param: str) -> None:
        if characters > self._most:
            raise ContextLengthExceeded(
                f"The prompt has {characters:,} characters; with this model, pre-processing takes at most "
                f"{self._most:,}. Shorten it.",
                param=param,
            )

    def _steps(self, tenant: str) -> Steps:
        tokenizer = self._tokenizer
        return Steps(self._limit, lambda text: len(encode_for(tokenizer, tenant, text)), self._headers)


def plain_conversation(messages: Sequence[Mapping[str, Any]]) -> Conversation:
    """Messages of which each is one content block."""
    conversation = Conversation()
    for number, message in enumerate(messages):
        text = message.get("content")
        blocks = [ContentBlock(f"messages[{number}].content", message["role"], text)] if text else []
        conversation.add(dict(message), [(block, None) for block in blocks])
    return conversation


def report_notes(report: Report) -> tuple[tuple[str, str], ...]:
    """The response header that says what was done; none if nothing was asked for."""
    return ((PREPROCESSED_HEADER, report.summary()),) if report.steps else ()


def _moved(old: Conversation, new: Conversation) -> list[Marker]:
    paths = [block.path for group in old.blocks for block in group]
    places = {block.path: at for at, block in enumerate(b for group in new.blocks for b in group)}
    markers = []
    for marker in old.markers:
        at = places.get(paths[marker.block])
        if at is None:
            new.warnings.append(f"{marker.path} has no effect: truncation dropped its message")
        else:
            markers.append(replace(marker, block=at))
    return markers
