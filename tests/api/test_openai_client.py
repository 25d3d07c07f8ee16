"""The real `openai` package over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from hotprefix.base.errors import Overloaded, Unavailable
from tests.api.remote import Remote
from tests.api.support import HELLO

TOOLS: Any = [
    {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}
]
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>'


@pytest.fixture
def remote() -> Iterator[Remote]:
    with Remote() as remote:
        yield remote


@pytest.fixture
def client(remote: Remote) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{remote.url}/v1", api_key="key", max_retries=0) as client:
        yield client


def test_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="scripted", messages=HELLO, n=2)
    assert [choice.message.content for choice in answer.choices] == [HELLO[0]["content"]] * 2
    assert answer.usage is not None
    assert answer.usage.prompt_tokens_details is not None
    assert answer.usage.prompt_tokens_details.cached_tokens == answer.usage.prompt_tokens // 2
    assert answer._request_id


def test_chat_stream(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(
        model="scripted", messages=HELLO, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == HELLO[0]["content"]
    assert chunks[-1].usage is not None
    assert chunks[0].choices[0].delta.role == "assistant"


def test_stream_helper_puts_it_together(client: openai.OpenAI) -> None:
    with client.chat.completions.stream(
        model="scripted", messages=HELLO, logprobs=True, top_logprobs=1
    ) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == HELLO[0]["content"]
    assert final.choices[0].finish_reason == "stop"
    logprobs = final.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert bytes(b for entry in logprobs.content for b in entry.bytes or ()) == HELLO[0]["content"].encode()


@pytest.mark.parametrize("stream", [False, True])
def test_tools(remote: Remote, client: openai.OpenAI, stream: bool) -> None:
    remote.engine.reply = lambda prompt: f"Well. {CALL}"
    if stream:
        with client.chat.completions.stream(model="scripted", messages=HELLO, tools=TOOLS) as events:
            choice: Any = events.get_final_completion().choices[0]
    else:
        choice = client.chat.completions.create(model="scripted", messages=HELLO, tools=TOOLS).choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "Well."
    (call,) = choice.message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("weather", {"city": "Paris"})


def test_completions_and_models(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="scripted", prompt=["ab", "c"], logprobs=1)
    assert [choice.text for choice in answer.choices] == ["ab", "c"]
    assert [model.id for model in client.models.list()] == ["scripted", "also-scripted"]
    assert client.models.retrieve("scripted").owned_by == "hotprefix"


def test_errors_are_its_exceptions(remote: Remote, client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="gpt-4", messages=HELLO)
    assert missing.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as bad:
        client.chat.completions.create(model="scripted", messages=HELLO, temperature=5)
    assert bad.value.param == "temperature"
    remote.engine.refusal = Overloaded("full")
    with pytest.raises(openai.RateLimitError):
        client.chat.completions.create(model="scripted", messages=HELLO)
    remote.engine.refusal = Unavailable("later")
    with pytest.raises(openai.InternalServerError):
        client.chat.completions.create(model="scripted", messages=HELLO)


def test_an_error_in_a_stream_is_an_exception(remote: Remote, client: openai.OpenAI) -> None:
    remote.engine.fail_after = 3
    stream = client.chat.completions.create(model="scripted", messages=HELLO, stream=True)
    with pytest.raises(openai.APIError, match="request id"):
        list(stream)


def test_a_full_line_is_tried_again(remote: Remote) -> None:
    remote.engine.refusals = [Overloaded("full", retry_after=0)]
    with openai.OpenAI(base_url=f"{remote.url}/v1", api_key="key", max_retries=1) as patient:
        answer = patient.chat.completions.create(model="scripted", messages=HELLO)
    assert answer.choices[0].message.content == HELLO[0]["content"]


def test_the_asynchronous_client(remote: Remote) -> None:
    async def ask() -> list[str | None]:
        async with openai.AsyncOpenAI(base_url=f"{remote.url}/v1", api_key="key") as client:
            asked = [client.chat.completions.create(model="scripted", messages=HELLO) for _ in range(20)]
            return [answer.choices[0].message.content for answer in await asyncio.gather(*asked)]

    assert asyncio.run(ask()) == [HELLO[0]["content"]] * 20
