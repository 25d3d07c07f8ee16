"""`POST /v1/completions`."""

from __future__ import annotations

from starlette.types import Receive, Scope, Send

from hotprefix.api.body import read_json
from hotprefix.api.completion_answer import CompletionAnswer, legacy_logprobs
from hotprefix.api.completion_request import CompletionRequest, parse_completion
from hotprefix.api.frame import COMPLETION, frame_of
from hotprefix.api.generation import Generation, Job, tenant_of
from hotprefix.api.openai_shower import shower_of
from hotprefix.api.prompting import Prompting, require_model
from hotprefix.api.record import record_of
from hotprefix.api.service import Service
from hotprefix.api.wishes import wish_strategy
from hotprefix.base.errors import InvalidRequest


class CompletionsEndpoint:
    """An ASGI app."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._prompting = Prompting(service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.inflight.answering():
            request = parse_completion(await read_json(scope, receive, self._service.settings))
            wish_strategy(request.kv_strategy)
            job = await self._job(request, tenant_of(scope))
            generation = Generation(self._service, scope, receive, send)
            frame = frame_of(COMPLETION, self._service, record_of(scope), request.model)
            shower = shower_of(self._answer(request, job), frame, include_usage=request.include_usage)
            if request.stream:
                await generation.stream(job, shower)
            else:
                await generation.whole(job, shower)

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
