"""The `openai` package against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from tests.e2e.server import Server

pytestmark = pytest.mark.model

SYSTEM = "You answer in one short sentence. " * 20
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"enum": ["Oslo", "Rome"]}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture
def client(server: Server) -> Iterator[openai.OpenAI]:
    with (
        httpx.Client(trust_env=False) as direct,
        openai.OpenAI(
            base_url=f"{server.url}/v1", api_key="sdk", max_retries=0, http_client=direct
        ) as client,
    ):
        yield client


def messages(question: str) -> Any:
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


def test_chat_and_stream_share_a_prefix(client: openai.OpenAI) -> None:
    first = client.chat.completions.create(
        model=DEFAULT_MODEL, messages=messages("What is tea?"), max_tokens=10, temperature=0
    )
    assert first.choices[0].message.content
    stream = client.chat.completions.create(
        model=DEFAULT_MODEL,
        messages=messages("What is ink?"),
        max_tokens=10,
        temperature=0,
        stream=True,
        stream_options={"include_usage": True},
    )
    *chunks, last = stream
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert last.usage is not None
    assert last.usage.prompt_tokens_details is not None
    assert (last.usage.prompt_tokens_details.cached_tokens or 0) > 100


def test_tools(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model=DEFAULT_MODEL,
        messages=messages("What is the weather in Rome?"),
        tools=[TOOL],
        tool_choice="required",
        parallel_tool_calls=False,
        max_tokens=60,
        temperature=0,
    )
    (call,) = answer.choices[0].message.tool_calls or ()
    assert call.type == "function"
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments)["city"] in ("Oslo", "Rome")


def test_models_and_completions(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == [DEFAULT_MODEL]
    answer = client.completions.create(model=DEFAULT_MODEL, prompt="One, two,", max_tokens=4, temperature=0)
    assert answer.choices[0].text


def test_errors(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="not served here"):
        client.chat.completions.create(model="gpt-5", messages=messages("Hi"))
    with pytest.raises(openai.BadRequestError, match="8191") as long:
        client.chat.completions.create(model=DEFAULT_MODEL, messages=messages("long " * 9000))
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError) as wrong:
        client.chat.completions.create(model=DEFAULT_MODEL, messages=messages("Hi"), temperature=9)
    assert wrong.value.param == "temperature"
