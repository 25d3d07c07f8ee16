"""Messages or raw text → the token ids that the engine computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hotprefix.base.errors import ContextLengthExceeded, InvalidRequest
from hotprefix.prompt.answers import AnswerMemory
from hotprefix.prompt.chat import ChatTemplate, Message, Tool
from hotprefix.prompt.offsets import TokenOffsets
from hotprefix.prompt.segments import encode_for
from hotprefix.prompt.spanning import block_ends
from hotprefix.prompt.spans import BlockSpan, ContentBlock, SpannedPrompt
from hotprefix.prompt.tokenizer import Tokenizer
from hotprefix.prompt.tools import write_tools_into


@dataclass(frozen=True, slots=True)
class _Place:
    """What stands in a prompt beside its messages, and whose it is."""

    tools: Sequence[Tool]
    variables: Mapping[str, Any] | None
    tenant: str


class PromptBuilder:
    """Builds prompts of at most `limit` tokens (None: any length).

    A raw text starts with `head` (BOS, for models that want it); a chat starts as its template
    says. Texts that can't fit are refused before they are tokenised. What is remembered of a text is for
    the tenant that sent it.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        template: ChatTemplate,
        *,
        answers: AnswerMemory | None = None,
        head: Sequence[int] = (),
        limit: int | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._template = template
        self._answers = answers
        self._offsets = TokenOffsets(tokenizer)
        self._head = list(head)
        self._limit = limit

    def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
        tenant: str = "",
    ) -> list[int]:
        """Token ids of a conversation, with the opening of the answer at its end.

        Answers that `tenant` was given before have the ids that `answers` kept of them.

        Raises `InvalidRequest` if the template refuses, `ContextLengthExceeded` beyond the limit.
        """
        return self._encode(self.chat_text(messages, tools, variables), tenant)

    def spanned(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
        tenant: str = "",
    ) -> SpannedPrompt:
        """As `chat`, with the places of the content blocks; `blocks[i]` are those of message i."""
        text = self.chat_text(messages, tools, variables)
        place = _Place(tools, variables, tenant)
        return self._with_spans(text, self._encode(text, tenant), messages, blocks, place)

    def continued(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
        tenant: str = "",
    ) -> SpannedPrompt:
        """As `spanned`, but the last message is an answer that was begun: the prompt ends with its text,
        without the template's end of the turn.

        Raises `InvalidRequest` if the template does not render that text as it stands.
        """
        ended = dict(variables or {}) | {"add_generation_prompt": False}
        whole = self.chat_text(messages, tools, ended)
        ends = block_ends(lambda some: self.chat_text(some, tools, ended), whole, messages, blocks)
        text = whole[: ends[-1]] if ends else ""
        if not (blocks[-1] and text.endswith(blocks[-1][-1].text)):
            raise InvalidRequest(
                "This model does not support assistant message prefill: its chat template changes the text. "
                "The conversation must end with a user message.",
                param="messages",
            )
        return self._located(text, self._encode(text, tenant), blocks, ends, tenant)

    def measured(
        self,
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
        tenant: str = "",
    ) -> SpannedPrompt:
        """As `spanned`, but of any length and with every answer tokenised anew: equal messages have
        equal sizes at any time, whatever is remembered."""
        text = self.chat_text(messages, tools, variables)
        ids = encode_for(self._tokenizer, tenant, text)
        return self._with_spans(text, ids, messages, blocks, _Place(tools, variables, tenant))

    def _with_spans(
        self,
        text: str,
        ids: Sequence[int],
        messages: Sequence[Message],
        blocks: Sequence[Sequence[ContentBlock]],
        place: _Place,
    ) -> SpannedPrompt:
        def render(some: Sequence[Message]) -> str:
            return self.chat_text(some, place.tools, place.variables)

        return self._located(text, ids, blocks, block_ends(render, text, messages, blocks), place.tenant)

    def _located(
        self,
        text: str,
        ids: Sequence[int],
        blocks: Sequence[Sequence[ContentBlock]],
        ends: Sequence[int],
        tenant: str,
    ) -> SpannedPrompt:
        flat = [block for group in blocks for block in group]
        counts = self._offsets.counts(text, ids, ends, tenant)
        spans = [BlockSpan(*place) for place in zip(flat, ends, counts, strict=True)]
        return SpannedPrompt(text, tuple(ids), tuple(spans))

    def chat_text(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """The text that `chat` tokenises."""
        if not self._template.handles_tools:
            return self._template.render(write_tools_into(messages, tools), (), variables)
        return self._template.render(messages, tools, variables)

    def text(self, prompt: str, tenant: str = "") -> list[int]:
        """Token ids of a raw prompt of `tenant`. Raises `ContextLengthExceeded` beyond the limit."""
        self._require(self.count_floor(prompt) + len(self._head), "at least ", "prompt")
        ids = [*self._head, *encode_for(self._tokenizer, tenant, prompt)]
        self._require(len(ids), "", "prompt")
        return ids

    def within(self, limit: int) -> PromptBuilder:
        """The same builder with another limit."""
        return PromptBuilder(
            self._tokenizer, self._template, answers=self._answers, head=self._head, limit=limit
        )

    def count_floor(self, text: str) -> int:
        """A number of tokens that `text` has at least; costs no tokenising."""
        size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
        return -(-size // self._tokenizer.longest_token)

    def _encode(self, text: str, tenant: str) -> list[int]:
        self._require(self.count_floor(text), "at least ", "messages")
        answers = self._answers
        ids = encode_for(self._tokenizer, tenant, text) if answers is None else answers.encode(tenant, text)
        self._require(len(ids), "", "messages")
        return ids

    def _require(self, count: int, qualifier: str, param: str) -> None:
        if self._limit is not None and count > self._limit:
            raise ContextLengthExceeded(
                f"The prompt has {qualifier}{count} tokens; at most {self._limit} fit. Shorten it.",
                param=param,
            )
