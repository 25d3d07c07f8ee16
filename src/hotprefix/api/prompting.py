"""From a checked request to the token ids of its prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hotprefix.api.conversation import Conversation
from hotprefix.api.service import Service
from hotprefix.base.errors import ContextLengthExceeded, InvalidRequest, ModelNotFound
from hotprefix.engine.front import ServedModel
from hotprefix.modes.marker import Marker
from hotprefix.modes.turn import TurnRequest
from hotprefix.prompt.spans import SpannedPrompt

_T = TypeVar("_T")


def require_model(model: ServedModel, name: str) -> None:
    """Raise `ModelNotFound` unless `name` is what is served here."""
    if name != model.name and name not in model.aliases:
        raise ModelNotFound(
            f"The model '{name[:200]}' is not served here; this server has '{model.name}'.", param="model"
        )


class Prompting:
    """Tokenises in worker threads; what can't fit is refused with numbers."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def turn(
        self,
        conversation: Conversation,
        tools: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
        tenant: str,
    ) -> TurnRequest:
        """A conversation of `tenant`, rendered and tokenised, as the caches take it.

        Raises `ContextLengthExceeded` or `InvalidRequest`.
        """
        prompts = self._service.prompts
        prompt = await self._in_worker(
            lambda: prompts.spanned(conversation.messages, conversation.blocks, tools, variables, tenant),
            "messages",
        )
        turn = self._turn(prompt, tenant, tuple(conversation.markers), conversation.warnings)
        parameters = {name: repr(value) for name, value in variables.items()}
        return replace(turn, tools=tuple(tools), parameters=parameters)

    async def measured(
        self, conversation: Conversation, tools: Sequence[Mapping[str, Any]], variables: Mapping[str, Any]
    ) -> SpannedPrompt:
        """A conversation of any length, for its sizes. Raises `InvalidRequest`."""
        prompts = self._service.prompts
        return await self._in_worker(
            lambda: prompts.measured(conversation.messages, conversation.blocks, tools, variables), "messages"
        )

    async def raw_turn(self, prompt: str | list[int], param: str, tenant: str) -> TurnRequest:
        """A raw prompt as the caches take it: no content blocks, so no markers."""
        ids = await self.raw(prompt, param)
        return self._turn(SpannedPrompt("", tuple(ids), ()), tenant, (), ())

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
        tenant: str,
    ) -> list[int]:
        """Token ids of a conversation of `tenant`. Raises `ContextLengthExceeded` or `InvalidRequest`."""
        return await self._in_worker(
            lambda: self._service.prompts.chat(messages, tools, variables, tenant), "messages"
        )

    async def raw(self, prompt: str | list[int], param: str) -> list[int]:
        """Token ids of a raw prompt, which may be given as ids already."""
        if isinstance(prompt, str):
            ids = await self._in_worker(lambda: self._service.prompts.text(prompt), param)
        else:
            ids = prompt
            vocab_size = self._service.engine.model.tokenizer.vocab_size
            if max(ids) >= vocab_size:
                raise InvalidRequest(
                    f"Invalid value for '{param}': {max(ids)} is no token id; this model's go from 0 to "
                    f"{vocab_size - 1}.",
                    param=param,
                )
        if not ids:
            raise InvalidRequest("The prompt is empty; give at least one token to go on from.", param=param)
        return ids

    def require_fit(self, ids: Sequence[int], max_tokens: int | None, param: str) -> None:
        """Raise `ContextLengthExceeded` unless prompt and answer fit into the context."""
        limit = self._service.engine.model.context_length
        if len(ids) >= limit:
            raise ContextLengthExceeded(
                f"This model's context is {limit} tokens, prompt and answer together, but the prompt has "
                f"{len(ids)} tokens. Shorten it.",
                param=param,
            )
        if max_tokens is not None and len(ids) + max_tokens > limit:
            raise ContextLengthExceeded(
                f"This model's context is {limit} tokens, but {len(ids) + max_tokens} were asked for: "
                f"{len(ids)} in the prompt and {max_tokens} for the answer. Shorten the prompt or lower "
                f"max_tokens to {limit - len(ids)}.",
                param=param,
            )

    def _turn(
        self, prompt: SpannedPrompt, tenant: str, markers: tuple[Marker, ...], warnings: Sequence[str]
    ) -> TurnRequest:
        model = self._service.engine.model.name
        return TurnRequest(tenant, model, self._service.profile, prompt, markers, warnings=tuple(warnings))

    async def _in_worker(self, work: Callable[[], _T], param: str) -> _T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._service.workers, work)
        except RecursionError:
            raise InvalidRequest("Something in the request is nested too deeply.", param=param) from None
