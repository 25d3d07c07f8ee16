"""Asks a server over HTTP and takes the times a user would see."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import orjson

from hotprefix.base.clock import Clock
from hotprefix.base.errors import HotprefixError

COMPLETIONS = "/v1/completions"
CHAT = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Answer:
    """Seconds from sending to the first token and to the end; tokens as the server counts them."""

    first: float
    total: float
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    text: str


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, encoded before the clock starts."""

    path: str
    body: bytes
    stream: bool


class BenchClient:
    """Talks to one server; connections are kept open between requests."""

    def __init__(self, http: httpx.AsyncClient, model: str, clock: Clock) -> None:
        self._http = http
        self._model = model
        self._clock = clock

    def completion(self, token_ids: Sequence[int], max_tokens: int, *, stream: bool = True) -> Ask:
        """Exactly `max_tokens` greedy tokens after a prompt of token ids."""
        return self._ask(COMPLETIONS, {"prompt": list(token_ids)}, max_tokens, stream)

    def chat(self, messages: Sequence[dict[str, str]], max_tokens: int) -> Ask:
        """Exactly `max_tokens` greedy tokens after a conversation."""
        return self._ask(CHAT, {"messages": list(messages)}, max_tokens, True)

    def _ask(self, path: str, body: dict[str, Any], max_tokens: int, stream: bool) -> Ask:
        body |= {"model": self._model, "max_tokens": max_tokens, "temperature": 0, "ignore_eos": True}
        if stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return Ask(path, orjson.dumps(body), stream)

    async def run(self, ask: Ask) -> Answer:
        """Send and wait for the end. Raises `HotprefixError` if the server refuses or goes away."""
        try:
            return await self._run(ask)
        except httpx.HTTPError as error:
            raise HotprefixError(f"The server broke off: {error or type(error).__name__}") from error

    async def _run(self, ask: Ask) -> Answer:
        start = self._clock.now()
        first: float | None = None
        parts: list[str] = []
        usage: dict[str, Any] = {}
        async for event in self._events(ask):
            for choice in event.get("choices", ()):
                parts.append(_text(choice))
                if first is None and (parts[-1] or choice.get("finish_reason")):
                    first = self._clock.now() - start
            usage = event.get("usage") or usage
        total = self._clock.now() - start
        return Answer(
            first=total if first is None else first,
            total=total,
            prompt_tokens=usage.get("prompt_tokens", 0),
            cached_tokens=(usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0),
            completion_tokens=usage.get("completion_tokens", 0),
            text="".join(parts),
        )

    async def _events(self, ask: Ask) -> AsyncIterator[dict[str, Any]]:
        headers = {"content-type": "application/json"}
        async with self._http.stream("POST", ask.path, content=ask.body, headers=headers) as response:
            if response.status_code != httpx.codes.OK or not ask.stream:
                content = await response.aread()
                _check(response.status_code, content)
                yield orjson.loads(content)
                return
            async for line in response.aiter_lines():
                if line.startswith("data: ") and line != "data: [DONE]":
                    event = orjson.loads(line[6:])
                    if "error" in event:
                        raise HotprefixError(f"The server broke off: {event['error'].get('message')}")
                    yield event


def _text(choice: dict[str, Any]) -> str:
    """The text in a choice of any of the four shapes: chat or not, streamed or not."""
    part = choice.get("delta") or choice.get("message")
    return (part.get("content") if part else choice.get("text")) or ""


def _check(status: int, content: bytes) -> None:
    if status == httpx.codes.OK:
        return
    try:
        message = orjson.loads(content)["error"]["message"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = content[:200].decode("utf-8", "replace")
    raise HotprefixError(f"The server answered {status}: {message}")


@asynccontextmanager
async def connect(url: str, clock: Clock) -> AsyncIterator[BenchClient]:
    """A client for the first model that the server at `url` names."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=limits, trust_env=False) as http:
        try:
            response = await http.get("/v1/models")
        except httpx.TransportError as error:
            raise HotprefixError(f"Nothing answers at {url}: {error or type(error).__name__}") from error
        _check(response.status_code, response.content)
        yield BenchClient(http, _first_model(url, response.content), clock)


def _first_model(url: str, content: bytes) -> str:
    try:
        return str(orjson.loads(content)["data"][0]["id"])
    except (orjson.JSONDecodeError, LookupError, TypeError) as error:
        raise HotprefixError(f"{url}/v1/models names no model. Is this a Hotprefix server?") from error
