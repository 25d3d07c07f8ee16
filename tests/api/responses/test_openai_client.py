"""The real `openai` package over a real socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pydantic
import pytest
from openai.types.responses import Response

from tests.api.remote import Remote
from tests.api.responses.support import CALL, DASHSCOPE, OPENAI, SESSION, WEATHER

TOOLS: Any = [WEATHER]
BASES = pytest.mark.parametrize("base", [OPENAI, DASHSCOPE])


@pytest.fixture
def remote() -> Iterator[Remote]:
    with Remote(profile="dashscope-2026-03") as remote:
        yield remote


def client(remote: Remote, base: str = OPENAI, key: str = "k") -> openai.OpenAI:
    return openai.OpenAI(base_url=remote.url + base.removesuffix("/responses"), api_key=key, max_retries=0)


@BASES
def test_create_retrieve_list_and_delete(remote: Remote, base: str) -> None:
    api = client(remote, base)
    made = api.responses.create(model="scripted", input="Hello", instructions="Be kind.", metadata={"a": "b"})
    assert isinstance(made, Response)
    assert made.output_text == "Hello"
    assert made.usage is not None
    assert made.usage.input_tokens_details.cached_tokens == 0
    again = api.responses.retrieve(made.id)
    first, second = made.to_dict(), again.to_dict()
    # Looking at a response starts its retention anew, maybe in the next second.
    assert second.pop("expires_at") >= first.pop("expires_at")
    assert second == first
    items = list(api.responses.input_items.list(made.id, order="asc"))
    assert [item.content[0].text for item in items] == ["Hello"]  # type: ignore[union-attr]
    api.responses.delete(made.id)
    with pytest.raises(openai.NotFoundError):
        api.responses.retrieve(made.id)


@BASES
def test_the_stream_helper(remote: Remote, base: str) -> None:
    api = client(remote, base)
    with api.responses.stream(model="scripted", input="Hello") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    assert final.output_text == "Hello"
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    raw = api.responses.create(model="scripted", input="Hello", stream=True)
    assert "".join(event.delta for event in raw if event.type == "response.output_text.delta") == "Hello"


@BASES
def test_async(remote: Remote, base: str) -> None:
    async def run() -> tuple[str, str]:
        url = remote.url + base.removesuffix("/responses")
        async with openai.AsyncOpenAI(base_url=url, api_key="k", max_retries=0) as api:
            whole = await api.responses.create(model="scripted", input="Hello")
            async with api.responses.stream(
                model="scripted", input="More", previous_response_id=whole.id
            ) as stream:
                final = await stream.get_final_response()
            return whole.output_text, final.output_text

    assert asyncio.run(run()) == ("Hello", "More")


@BASES
def test_an_agent_runs_its_tools_over_three_turns(remote: Remote, base: str) -> None:
    def reply(prompt: str) -> str:
        return "It is sunny in both." if prompt.count("tool:") == 2 else CALL

    remote.engine.reply = reply
    api = client(remote, base)
    response = api.responses.create(model="scripted", input="Paris and Rome?", tools=TOOLS)
    rounds = 0
    while calls := [item for item in response.output if item.type == "function_call"]:
        rounds += 1
        assert json.loads(calls[0].arguments) == {"city": "Paris"}
        results: Any = [
            {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in calls
        ]
        response = api.responses.create(
            model="scripted", input=results, tools=TOOLS, previous_response_id=response.id
        )
    assert rounds == 2
    assert response.output_text == "It is sunny in both."


def test_an_agent_may_send_its_history_itself(remote: Remote) -> None:
    remote.engine.reply = lambda prompt: "Sunny." if "tool:" in prompt else CALL
    api = client(remote)
    talk: Any = [{"role": "user", "content": "Paris?"}]
    response = api.responses.create(model="scripted", input=talk, tools=TOOLS, store=False)
    talk += response.output
    talk.append({"type": "function_call_output", "call_id": response.output[0].call_id, "output": "x"})  # type: ignore[union-attr]
    response = api.responses.create(model="scripted", input=talk, tools=TOOLS, store=False)
    assert response.output_text == "Sunny."


def test_parsed_answers(remote: Remote) -> None:
    class Place(pydantic.BaseModel):
        city: str

    remote.engine.reply = lambda _: '{"city": "Paris"}'
    parsed = client(remote).responses.parse(model="scripted", input="Where?", text_format=Place)
    assert parsed.output_parsed == Place(city="Paris")
    assert parsed.text is not None
    grammar = remote.engine.seen[-1].sampling.grammar
    assert grammar is not None
    assert json.loads(grammar.source)["required"] == ["city"]


def test_an_incomplete_answer(remote: Remote) -> None:
    response = client(remote).responses.create(model="scripted", input="Hello", max_output_tokens=2)
    assert response.status == "incomplete"
    assert response.incomplete_details is not None
    assert response.incomplete_details.reason == "max_output_tokens"


def test_errors_are_the_packages_own(remote: Remote) -> None:
    api = client(remote)
    with pytest.raises(openai.BadRequestError) as raised:
        api.responses.create(model="scripted", input="Hello", previous_response_id="resp_x")
    assert raised.value.code == "previous_response_not_found"
    assert raised.value.param == "previous_response_id"
    with pytest.raises(openai.BadRequestError):
        client(remote, DASHSCOPE).responses.create(model="scripted", input="Hello", previous_response_id="x")


def test_the_session_cache(remote: Remote) -> None:
    api = client(remote, DASHSCOPE)
    rules = "Answer like a librarian. " * 50
    more: Any = {"model": "scripted", "instructions": rules, "extra_headers": SESSION}
    first = api.responses.create(input="one", **more)
    second = api.responses.create(input="two", previous_response_id=first.id, **more)
    created = first.usage.x_details[0]["prompt_tokens_details"]["cache_creation_input_tokens"]  # type: ignore[union-attr]
    assert second.usage is not None
    assert second.usage.input_tokens_details.cached_tokens == created > 1024
