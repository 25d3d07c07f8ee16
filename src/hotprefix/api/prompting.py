"""From a checked request to the token ids of its prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from hotprefix.api.conversation import Conversation
from hotprefix.api.named_hit import look_at
from hotprefix.api.preprocessing import Prepared, Preprocessing, plain_conversation, report_notes
from hotprefix.api.service import Prompts, Service
from hotprefix.api.strategy_wish import is_cut
from hotprefix.api.wishes import current_wishes
from hotprefix.base.errors import ContextLengthExceeded, InvalidRequest, ModelNotFound
from hotprefix.engine.front import ServedModel
from hotprefix.modes.imprint import Imprint, take_imprint
from hotprefix.modes.marker import Marker
from hotprefix.modes.turn import TurnRequest
from hotprefix.prompt.preprocess.catalogue import StepName
from hotprefix.prompt.preprocess.pipeline import Report
from hotprefix.prompt.spans import BlockSpan, ContentBlock, SpannedPrompt

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
        self._preprocessing = Preprocessing(service.engine.model)

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
        prompts, steps = self._prompts(), self._wanted()

        engine, parameters = self._service.engine, {name: repr(value) for name, value in variables.items()}

        def build() -> tuple[Prepared, SpannedPrompt, Imprint]:
            done = self._preprocessing.conversation(steps, conversation, tools, tenant)
            talk = done.conversation
            render = prompts.continued if talk.is_begun else prompts.spanned
            prompt = render(talk.messages, talk.blocks, done.tools, variables, tenant)
            imprint = take_imprint(engine, tenant, engine.model.name, prompt, done.tools, parameters)
            return done, prompt, imprint

        done, prompt, imprint = await self._in_worker(build, "messages")
        talk = done.conversation
        turn = await self._turn(prompt, tenant, tuple(talk.markers), talk.warnings, report_notes(done.report))
        return replace(turn, tools=tuple(done.tools), parameters=parameters, imprint=imprint)

    async def measured(
        self,
        conversation: Conversation,
        tools: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
        tenant: str,
    ) -> SpannedPrompt:
        """A conversation of any length, for its sizes. Raises `InvalidRequest`."""
        prompts, talk = self._service.prompts, conversation
        return await self._in_worker(
            lambda: prompts.measured(talk.messages, talk.blocks, tools, variables, tenant), "messages"
        )

    async def raw_turn(self, prompt: str | list[int], param: str, tenant: str) -> TurnRequest:
        """A raw prompt as the caches take it: one content block, and no markers."""
        raw, report = (
            await self._prepared(prompt, param, tenant) if isinstance(prompt, str) else (prompt, Report())
        )
        ids = await self.raw(raw, param, tenant)
        engine = self._service.engine

        def build() -> tuple[SpannedPrompt, Imprint]:
            text = raw if isinstance(raw, str) else engine.model.tokenizer.decode(ids)
            block = BlockSpan(ContentBlock(param, "user", text), len(text), len(ids))
            spanned = SpannedPrompt(text, tuple(ids), (block,))
            return spanned, take_imprint(engine, tenant, engine.model.name, spanned)

        spanned, imprint = await self._in_worker(build, param)
        turn = await self._turn(spanned, tenant, (), (), report_notes(report))
        return replace(turn, imprint=imprint)

    async def chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
        tenant: str,
    ) -> list[int]:
        """Token ids of a conversation of `tenant`. Raises `ContextLengthExceeded` or `InvalidRequest`."""
        prompts, steps = self._prompts(), self._wanted()

        def build() -> list[int]:
            if not steps:
                return prompts.chat(messages, tools, variables, tenant)
            done = self._preprocessing.conversation(steps, plain_conversation(messages), tools, tenant)
            return prompts.chat(done.conversation.messages, done.tools, variables, tenant)

        return await self._in_worker(build, "messages")

    async def text(self, prompt: str, param: str, tenant: str) -> list[int]:
        """Token ids of a text as a raw prompt of `tenant`, after the steps that are wanted."""
        text, _ = await self._prepared(prompt, param, tenant)
        return await self.raw(text, param, tenant)

    async def raw(self, prompt: str | list[int], param: str, tenant: str) -> list[int]:
        """Token ids of a raw prompt of `tenant`, which may be given as ids already."""
        if isinstance(prompt, str):
            prompts = self._prompts()
            ids = await self._in_worker(lambda: prompts.text(prompt, tenant), param)
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
        """Raise `ContextLengthExceeded` unless prompt and answer fit into the context, or into what a
        strategy that bounds its cache can do."""
        limit = self.longest
        is_context = limit == self._service.engine.model.context_length
        most = "This model's context is" if is_context else "This server takes at most"
        if len(ids) >= limit:
            raise ContextLengthExceeded(
                f"{most} {limit} tokens, prompt and answer together, but the prompt has "
                f"{len(ids)} tokens. Shorten it.",
                param=param,
            )
        if max_tokens is not None and len(ids) + max_tokens > limit:
            raise ContextLengthExceeded(
                f"{most} {limit} tokens, but {len(ids) + max_tokens} were asked for: "
                f"{len(ids)} in the prompt and {max_tokens} for the answer. Shorten the prompt or lower "
                f"max_tokens to {limit - len(ids)}.",
                param=param,
            )

    @property
    def longest(self) -> int:
        """Tokens that prompt and answer of the current request may have together."""
        service = self._service
        if is_cut(current_wishes().strategy, service.strategy):
            return service.strategy.longest
        return service.engine.model.context_length

    def _prompts(self) -> Prompts:
        service = self._service
        if is_cut(current_wishes().strategy, service.strategy):
            return service.prompts.within(self.longest - 1)
        return service.prompts

    async def _turn(
        self,
        prompt: SpannedPrompt,
        tenant: str,
        markers: tuple[Marker, ...],
        warnings: Sequence[str],
        notes: tuple[tuple[str, str], ...],
    ) -> TurnRequest:
        model, name = self._service.engine.model, current_wishes().cache
        if name:
            seen = await look_at(self._service.named, tenant, name, prompt, model.tokenizer)
            notes, warnings = (*notes, *seen.notes), (*warnings, *seen.warnings)
        turn = TurnRequest(tenant, model.name, self._service.profile, prompt, markers, notes=notes)
        return replace(turn, warnings=tuple(warnings))

    def _wanted(self) -> tuple[StepName, ...]:
        wished = current_wishes().preprocess
        return self._service.preprocess if wished is None else wished

    async def _prepared(self, text: str, param: str, tenant: str) -> tuple[str, Report]:
        steps = self._wanted()
        if not steps:
            return text, Report()
        return await self._in_worker(lambda: self._preprocessing.text(steps, text, param, tenant), param)

    async def _in_worker(self, work: Callable[[], _T], param: str) -> _T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._service.workers, work)
        except RecursionError:
            raise InvalidRequest("Something in the request is nested too deeply.", param=param) from None
