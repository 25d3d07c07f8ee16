"""An engine whose answers are written beforehand: a double for tests of the HTTP layer only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hotprefix.base.ids import BlockKey, RequestId
from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.engine.front import ServedModel
from hotprefix.engine.request import Delta, FinishReason, GenerationRequest, Timings, TokenLogprob, Usage
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.scope import CacheScope
from hotprefix.keys.zones import PublicZone
from hotprefix.kv.top import TopLimits, TopPath, TopPaths
from hotprefix.tenants.quota import TenantQuota

EOS = 256
VOCAB = 257
REPLACEMENT = "\ufffd"


class ByteStream:
    def __init__(self) -> None:
        self._held = b""

    def push(self, token_id: int) -> str:
        if token_id == EOS:
            return ""
        self._held += bytes([token_id])
        try:
            text, self._held = self._held.decode(), b""
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                text, self._held = self._held.decode("utf-8", "replace"), b""
            else:
                text = ""
        return text

    def finish(self) -> str:
        held, self._held = self._held, b""
        return held.decode("utf-8", "replace")


class ByteTokenizer:
    """A token is a byte."""

    vocab_size = VOCAB
    longest_token = 1

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def decode(self, token_ids: Sequence[int]) -> str:
        return bytes(t for t in token_ids if t != EOS).decode("utf-8", "replace")

    def token_bytes(self, token_id: int) -> bytes:
        return b"" if token_id == EOS else bytes([token_id])

    def stream(self) -> ByteStream:
        return ByteStream()

    def to_json(self) -> str:
        return "{}"


class PlainTemplate:
    """`role: content` lines, the last of which opens the answer."""

    handles_tools = True

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        rest = dict(variables or {})
        opening = ["assistant: "] if rest.pop("add_generation_prompt", True) else [""]
        head = [f"tools: {json.dumps(tools)}"] if tools else []
        head += [f"variables: {json.dumps(rest)}"] if rest else []
        return "\n".join([*head, *(f"{m['role']}: {m['content']}" for m in messages), *opening])


def echo(prompt: str) -> str:
    """The last thing the user said, or the whole of a raw prompt."""
    return prompt.rsplit("user: ", 1)[-1].split("\nassistant: ", maxsplit=1)[0]


class ScriptedEngine:
    """Answers `reply(prompt)`, a byte a token, then the end token. Of every prompt it reuses `share`,
    or what is pinned of it.

    While `hold_after` is set, every request waits there after so many tokens for `release`.
    """

    def __init__(self, reply: Callable[[str], str] = echo, context_length: int = 4096) -> None:
        self.evictions = EvictionLog()
        self.pins: dict[str, int] = {}
        self._pinned: dict[str, tuple[str, list[int]]] = {}
        self.pins_fail = False
        self.zone: PublicZone | None = None
        self.quotas: tuple[TenantQuota, ...] = ()
        self.short: tuple[str, ...] = ()
        self.paths: list[TopPath] = []
        self.share = 0.5
        self.reply = reply
        self.model = ServedModel(
            name="scripted",
            aliases=("also-scripted",),
            context_length=context_length,
            created=1_700_000_000,
            tokenizer=ByteTokenizer(),
            template=PlainTemplate(),
            fingerprint="0123456789abcdef",
        )
        self.ready = True
        self.refusal: Exception | None = None
        self.refusals: list[Exception] = []
        self.late_refusal: Exception | None = None
        self.fail_after: int | None = None
        self.hold_after: int | None = None
        self.seen: list[GenerationRequest] = []
        self.ended: dict[RequestId, str] = {}
        self.held = asyncio.Event()
        self._running: set[RequestId] = set()
        self._aborted: set[RequestId] = set()
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def in_flight(self) -> int:
        return len(self._running)

    def check(self, request: GenerationRequest) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        if self.refusal is not None:
            raise self.refusal

    @property
    def block_size(self) -> int:
        return 32

    @property
    def kv_format(self) -> str:
        return "scripted"

    def publish(self, zone: PublicZone) -> None:
        self.zone = zone

    async def grant(self, quotas: Sequence[TenantQuota]) -> Sequence[str]:
        self.quotas = tuple(quotas)
        return self.short

    def history(self, tenant: str, token_ids: Sequence[int]) -> TokenHistory:
        return TokenHistory(self.root_for(tenant), token_ids, self.block_size)

    def root_for(self, tenant: str) -> BlockKey:
        return CacheScope("scripted", "none", tenant=tenant).root()

    async def pin(self, name: str, tenant: str, token_ids: Sequence[int]) -> int:
        if self.pins_fail:
            return 0
        self.pins[name] = len(token_ids)
        self._pinned[name] = (tenant, list(token_ids))
        return len(token_ids)

    async def top(self, limits: TopLimits, owners: Collection[BlockKey] | None = None) -> TopPaths:
        return TopPaths(tuple(path for path in self.paths if owners is None or path.owner in owners))

    def unpin(self, name: str) -> None:
        self.pins.pop(name, None)
        self._pinned.pop(name, None)

    def lose_pins(self) -> None:
        """The blocks of pins go to requests that have no other room, and nobody is told."""
        self._pinned.clear()

    def _reused(self, request: GenerationRequest) -> int:
        ids = list(request.prompt_ids)
        pinned = [held for tenant, held in self._pinned.values() if tenant == request.tenant]
        known = [len(held) for held in pinned if ids[: len(held)] == held]
        return max([int(len(ids) * self.share), *known])

    def abort(self, request_id: RequestId) -> None:
        self._aborted.add(request_id)
        self._wake()

    def release(self) -> None:
        self.hold_after = None
        self._wake()

    async def stream(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        self.check(request)
        if self.late_refusal is not None:
            raise self.late_refusal
        self.seen.append(request)
        self._running.add(request.request_id)
        self.ended[request.request_id] = "closed by the reader"
        try:
            async for delta in self._deltas(request):
                if delta.last:
                    self.ended[request.request_id] = str(delta.finish_reason)
                yield delta
        finally:
            self._running.discard(request.request_id)
            self._aborted.discard(request.request_id)

    async def _deltas(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        answers = [_Answer(request, number, self._script(request)) for number in range(request.n)]
        reused = self._reused(request)
        step = drawn = 0
        while running := [answer for answer in answers if not answer.done]:
            await self._turn(request.request_id, step)
            for answer in running:
                if self.fail_after is not None and drawn >= self.fail_after:
                    raise RuntimeError("the secret reason of a failure")
                drawn += 1
                aborted = request.request_id in self._aborted
                delta = answer.abort() if aborted else answer.step()
                last = all(a.done for a in answers)
                if last:
                    yield _ended(delta, request, reused, answers)
                elif drawn == 1:
                    yield replace(delta, usage=_usage(request, reused, answers))
                else:
                    yield delta
            step += 1

    def _script(self, request: GenerationRequest) -> list[int]:
        return [*self.reply(self.model.tokenizer.decode(request.prompt_ids)).encode(), EOS]

    async def _turn(self, request_id: RequestId, step: int) -> None:
        await asyncio.sleep(0)
        while self.hold_after is not None and step >= self.hold_after and request_id not in self._aborted:
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            self.held.set()
            await waiter

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)


class _Answer:
    def __init__(self, request: GenerationRequest, number: int, script: list[int]) -> None:
        self._sampling = request.sampling
        self._number = number
        self._script = script
        self._text = ByteStream()
        self._said = ""
        self.tokens = 0
        self.done = False

    def step(self) -> Delta:
        token = self._script[self.tokens % len(self._script)]
        self.tokens += 1
        text = self._text.push(token)
        reason = self._reason(token, text)
        if reason is not None:
            self.done = True
            text += self._text.finish()
        self._said += text
        stop = next((stop for stop in self._sampling.stop if self._said.endswith(stop)), None)
        return Delta(self._number, text, (token,), self._logprobs(token), reason, stop)

    def abort(self) -> Delta:
        self.done = True
        return Delta(self._number, finish_reason=FinishReason.ABORTED)

    def _reason(self, token: int, text: str) -> FinishReason | None:
        if (token == EOS and not self._sampling.ignore_eos) or token in self._sampling.stop_token_ids:
            return FinishReason.STOP
        if any((self._said + text).endswith(stop) for stop in self._sampling.stop):
            return FinishReason.STOP
        return FinishReason.LENGTH if self.tokens == self._sampling.max_tokens else None

    def _logprobs(self, token: int) -> tuple[TokenLogprob, ...]:
        if self._sampling.top_logprobs is None:
            return ()
        top = tuple(((token + k) % VOCAB, -0.5 - k) for k in range(self._sampling.top_logprobs))
        return (TokenLogprob(token, -0.5, top),)


def _ended(delta: Delta, request: GenerationRequest, reused: int, answers: Sequence[_Answer]) -> Delta:
    usage = _usage(request, reused, answers)
    return replace(delta, usage=usage, timings=Timings(0.0, 0.01, 0.02), last=True)


def _usage(request: GenerationRequest, reused: int, answers: Sequence[_Answer]) -> Usage:
    return Usage(len(request.prompt_ids), reused, sum(a.tokens for a in answers))
