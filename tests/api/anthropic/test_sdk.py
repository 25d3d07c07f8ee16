"""The real `anthropic` package over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

from hotprefix.base.errors import Overloaded
from tests.api.anthropic.support import CALL, WEATHER
from tests.api.remote import Remote
from tests.api.support import HELLO

SAID = HELLO[0]["content"]
SYSTEM: Any = [{"type": "text", "text": "s" * 1100, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
SIZE = 1100 + len("system: ")
ASKED: Any = {"model": "scripted", "max_tokens": 200, "messages": HELLO}


@pytest.fixture
def remote() -> Iterator[Remote]:
    with Remote(profile="dashscope-2026-03") as remote:
        yield remote


@pytest.fixture(params=["", "/apps/anthropic"])
def client(remote: Remote, request: pytest.FixtureRequest) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=remote.url + request.param, api_key="key", max_retries=0) as client:
        yield client


@pytest.fixture
def claude(remote: Remote) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=remote.url, api_key="key", max_retries=0) as client:
        yield client


def test_a_message(client: anthropic.Anthropic) -> None:
    message = client.messages.create(**ASKED)
    assert [block.text for block in message.content if block.type == "text"] == [SAID]
    assert message.stop_reason == "end_turn"
    assert message._request_id
    count = client.messages.count_tokens(model="scripted", messages=HELLO)
    assert count.input_tokens == message.usage.input_tokens


def test_the_stream_helper_puts_it_together(client: anthropic.Anthropic) -> None:
    with client.messages.stream(**ASKED) as stream:
        assert "".join(stream.text_stream) == SAID
        final = stream.get_final_message()
    whole = client.messages.create(**ASKED)
    assert final.usage.to_dict() == whole.usage.to_dict()
    assert (final.stop_reason, final.content[0].to_dict()) == ("end_turn", whole.content[0].to_dict())


@pytest.mark.parametrize("stream", [True, False])
def test_tools(remote: Remote, client: anthropic.Anthropic, stream: bool) -> None:
    remote.engine.reply = lambda prompt: f"Well. {CALL}"
    asked = ASKED | {"tools": [WEATHER], "tool_choice": {"type": "auto"}}
    if stream:
        with client.messages.stream(**asked) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**asked)
    said, call = message.content
    assert said.type == "text"
    assert call.type == "tool_use"
    assert (call.name, call.input, message.stop_reason) == ("weather", {"city": "Paris"}, "tool_use")
    remote.engine.reply = lambda prompt: "Sunny."
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "sun", "is_error": False}
    history = [*HELLO, message.to_param(), {"role": "user", "content": [result]}]
    answer = client.messages.create(**(asked | {"messages": history}))
    assert answer.content[0].to_dict()["text"] == "Sunny."


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_that_was_begun(remote: Remote, client: anthropic.Anthropic, stream: bool) -> None:
    remote.engine.reply = lambda prompt: ' "red"}' if prompt.endswith('assistant: {"color":') else "?"
    asked: Any = ASKED | {"messages": [*HELLO, {"role": "assistant", "content": '{"color":'}]}
    if stream:
        with client.messages.stream(**asked) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**asked)
    assert message.content[0].to_dict()["text"] == ' "red"}'


def test_a_ping_is_passed_over(client: anthropic.Anthropic) -> None:
    with client.messages.with_streaming_response.create(**ASKED, stream=True) as raw:
        assert "event: ping" in list(raw.iter_lines())
    kinds = [event.type for event in client.messages.create(**ASKED, stream=True)]
    assert kinds[:3] == ["message_start", "content_block_start", "content_block_delta"]


def test_create_then_read(claude: anthropic.Anthropic) -> None:
    created = claude.messages.create(**ASKED, system=SYSTEM).usage
    assert created.cache_creation is not None
    assert (created.cache_read_input_tokens, created.cache_creation.ephemeral_1h_input_tokens) == (0, SIZE)
    with claude.messages.stream(**ASKED, system=SYSTEM) as stream:
        read = stream.get_final_message().usage
    assert (read.cache_read_input_tokens, read.cache_creation_input_tokens) == (SIZE, 0)


def test_warming(claude: anthropic.Anthropic) -> None:
    warm = claude.messages.create(**(ASKED | {"max_tokens": 0}), system=SYSTEM)
    assert (warm.content, warm.usage.output_tokens) == ([], 0)
    assert claude.messages.create(**ASKED, system=SYSTEM).usage.cache_read_input_tokens == SIZE


def test_errors_are_its_exceptions(remote: Remote, client: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError) as missing:
        client.messages.create(**(ASKED | {"model": "claude"}))
    assert missing.value.request_id
    with pytest.raises(anthropic.BadRequestError, match="temperature"):
        client.messages.create(**ASKED, extra_body={"temperature": 5})
    remote.engine.refusal = Overloaded("full")
    with pytest.raises(anthropic.APIStatusError) as full:
        client.messages.create(**ASKED)
    assert (full.value.status_code, full.value.type) == (529, "overloaded_error")
    remote.engine.refusal = RuntimeError("secret")
    with pytest.raises(anthropic.InternalServerError):
        client.messages.create(**ASKED)
    remote.engine.refusal = None
    remote.engine.fail_after = 3
    with pytest.raises(anthropic.APIError, match="request id"), client.messages.stream(**ASKED) as stream:
        stream.get_final_message()


def test_a_full_line_is_tried_again(remote: Remote) -> None:
    remote.engine.refusals = [Overloaded("full", retry_after=0)]
    with anthropic.Anthropic(base_url=remote.url, api_key="key", max_retries=1) as patient:
        assert patient.messages.create(**ASKED).content[0].to_dict()["text"] == SAID


def test_the_asynchronous_client(remote: Remote) -> None:
    async def ask() -> list[Any]:
        async with anthropic.AsyncAnthropic(base_url=remote.url, api_key="key") as client:
            asked = [client.messages.create(**ASKED) for _ in range(10)]
            return [message.content[0].to_dict()["text"] for message in await asyncio.gather(*asked)]

    assert asyncio.run(ask()) == [SAID] * 10
