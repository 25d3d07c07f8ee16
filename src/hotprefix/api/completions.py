"""`POST /v1/completions`."""

from __future__ import annotations

import uuid

from starlette.types import Receive, Scope, Send

from hotprefix.api.body import read_json
from hotprefix.api.completion_answer import CompletionAnswer, legacy_logprobs
from hotprefix.api.completion_request import CompletionRequest, parse_completion
from hotprefix.api.frame import Frame
from hotprefix.api.generation import Generation, Job, tenant_of
from hotprefix.api.openai_shower import OpenAiShower, UsageShower
from hotprefix.api.prompting import Prompting, require_model
from hotprefix.api.service import Service
from hotprefix.base.errors import InvalidRequest


class CompletionsEndpoint:
    """An ASGI app."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._prompting = Prompting(service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.inflight.answering():
            request = parse_completion(await read_json(scope, receive, self._service.settings))
            job = await self._job(request, tenant_of(scope))
            answer, frame = self._answer(request, job), self._frame(request)
            generation = Generation(self._service, scope, receive, send)
            if not request.stream:
                await generation.whole(job, OpenAiShower(answer, frame))
            elif request.include_usage:
                await generation.stream(job, UsageShower(answer, frame))
            else:
                await generation.stream(job, OpenAiShower(answer, frame))

    async def _job(self, request: CompletionRequest, tenant: str) -> Job:
        model = self._service.engine.model
        require_model(model, request.model)
        self._require_few(request)
        sampling = request.sampling(model, top_logprobs=request.logprobs, grammar=None)
        turns = []
        for number, prompt in enumerate(request.prompts):
            param = f"prompt[{number}]" if len(request.prompts) > 1 else "prompt"
            turn = await self._prompting.raw_turn(prompt, param, tenant)
            self._prompting.require_fit(turn.prompt.token_ids, sampling.max_tokens, param)
            turns.append(turn)
        return Job(request.model, turns, sampling, request.n or 1, request.ignored())

    def _frame(self, request: CompletionRequest) -> Frame:
        return Frame(
            answer_id=f"cmpl-{uuid.uuid4().hex}",
            whole_object="text_completion",
            chunk_object="text_completion",
            created=int(self._service.clock.wall()),
            model=request.model,
            fingerprint=f"fp_{self._service.engine.model.fingerprint[:12]}",
        )

    def _require_few(self, request: CompletionRequest) -> None:
        most = self._service.settings.max_choices
        if len(request.prompts) * (request.n or 1) > most:
            raise InvalidRequest(
                f"Too many answers in one request: {len(request.prompts)} prompts times {request.n or 1} is "
                f"over the limit of {most}.",
                param="prompt",
            )

    def _answer(self, request: CompletionRequest, job: Job) -> CompletionAnswer:
        tokenizer = self._service.engine.model.tokenizer
        echoes = [""] * len(job.turns)
        if request.echo:
            echoes = [p if isinstance(p, str) else tokenizer.decode(p) for p in request.prompts]
        logprobs = legacy_logprobs(len(job.turns) * job.n, request.logprobs, tokenizer)
        return CompletionAnswer(job.n, echoes, logprobs)
