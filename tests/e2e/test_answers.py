"""How answers are drawn and shaped, with the real model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.server import Server, text_of

pytestmark = pytest.mark.model

ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "Write a few words about the sea."}]}
PROMPT: dict[str, Any] = {"prompt": "The sea is"}
CITY_SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Paris", "Rome", "Oslo"]},
        "people": {"type": "integer", "minimum": 1, "maximum": 999},
        "sunny": {"type": "boolean"},
    },
    "required": ["city", "people", "sunny"],
    "additionalProperties": False,
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "weather", "description": "Weather now", "parameters": CITY_SCHEMA},
    },
    {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}},
]


def require_city(text: str) -> None:
    found = json.loads(text)
    assert list(found) == ["city", "people", "sunny"]
    assert found["city"] in ("Paris", "Rome", "Oslo")
    assert type(found["people"]) is int
    assert 1 <= found["people"] <= 999
    assert type(found["sunny"]) is bool


def folded(chunks: list[dict[str, Any]]) -> dict[int, tuple[str, str | None]]:
    """Index → text and finish reason of a stream."""
    texts: dict[int, tuple[str, str | None]] = {}
    for chunk in chunks:
        for choice in chunk["choices"]:
            before, reason = texts.get(choice["index"], ("", None))
            assert reason is None, "nothing comes after the finish reason"
            part = choice["text"] if "text" in choice else choice["delta"].get("content", "")
            texts[choice["index"]] = (before + part, choice["finish_reason"])
    return texts


@pytest.mark.parametrize(
    ("path", "prompt", "fields"),
    [
        ("/v1/chat/completions", ASKED, {"max_tokens": 30}),
        ("/v1/chat/completions", ASKED, {"max_tokens": 200, "temperature": 1, "seed": 3, "top_p": 0.9}),
        ("/v1/chat/completions", ASKED, {"max_tokens": 20, "temperature": 1, "seed": 4, "n": 3}),
        ("/compatible-mode/v1/chat/completions", ASKED, {"max_tokens": 30, "stop": ["a", " of"]}),
        ("/v1/completions", PROMPT, {"max_tokens": 20, "echo": True}),
        (
            "/v1/completions",
            {"prompt": ["One,", "The sea"]},
            {"max_tokens": 8, "n": 2, "temperature": 1, "seed": 1},
        ),
    ],
)
def test_a_stream_says_what_a_whole_answer_says(
    server: Server, path: str, prompt: dict[str, Any], fields: dict[str, Any]
) -> None:
    whole = server.ask(path, **prompt, **fields)
    *chunks, last = server.chunks(path, **prompt, **fields)
    assert all(chunk["usage"] is None for chunk in chunks)
    assert last["choices"] == []
    streamed = folded(chunks)
    for choice in whole["choices"]:
        text = choice["text"] if "text" in choice else choice["message"]["content"]
        assert streamed[choice["index"]] == (text, choice["finish_reason"])
    assert len(streamed) == len(whole["choices"])
    for count in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert last["usage"][count] == whole["usage"][count]


def test_seeds(server: Server) -> None:
    def drawn(**fields: Any) -> list[str]:
        answer = server.ask(**ASKED, max_tokens=16, temperature=1.0, **fields)
        return [choice["message"]["content"] for choice in answer["choices"]]

    three = drawn(seed=7, n=3)
    assert drawn(seed=7, n=3) == three
    assert len(set(three)) == 3, "choices of one request are drawn apart"
    assert drawn(seed=8, n=3) != three
    assert drawn(n=3) != drawn(n=3)


def test_stop_strings(server: Server) -> None:
    text = text_of(server.ask(**ASKED, max_tokens=40))
    word = text.split()[6]
    answer = server.ask(**ASKED, max_tokens=40, stop=["never said", word])
    assert text_of(answer) == text[: text.index(word)]
    assert answer["choices"][0]["finish_reason"] == "stop"


def test_length(server: Server) -> None:
    answer = server.ask(**ASKED, max_tokens=5, ignore_eos=True)
    assert answer["usage"]["completion_tokens"] == 5
    assert answer["choices"][0]["finish_reason"] == "length"
    assert len(server.tokens(prompt=text_of(answer))) <= 5


def test_logprobs(server: Server) -> None:
    choice = server.ask(**ASKED, max_tokens=12, ignore_eos=True, logprobs=True, top_logprobs=4)["choices"][0]
    entries = choice["logprobs"]["content"]
    assert len(entries) == 12
    assert (
        bytes(byte for entry in entries for byte in entry["bytes"]).decode() == choice["message"]["content"]
    )
    for entry in entries:
        top = [other["logprob"] for other in entry["top_logprobs"]]
        assert len(top) == 4
        assert top == sorted(top, reverse=True)
        assert top[0] == entry["logprob"] < 0


@pytest.mark.parametrize("seed", range(3))
def test_a_json_schema_is_kept(server: Server, seed: int) -> None:
    schema = {"name": "city", "schema": CITY_SCHEMA, "strict": True}
    wanted = {"type": "json_schema", "json_schema": schema}
    answer = server.ask(**ASKED, max_tokens=100, temperature=1.2, seed=seed, response_format=wanted)
    assert answer["choices"][0]["finish_reason"] == "stop"
    require_city(text_of(answer))


def test_json_objects(server: Server) -> None:
    asked = [{"role": "user", "content": 'Answer with JSON like {"a": 1} and nothing else.'}]
    ended = 0
    for seed in range(4):
        answer = server.ask(
            messages=asked,
            max_tokens=120,
            temperature=0.7,
            seed=seed,
            response_format={"type": "json_object"},
        )
        assert text_of(answer).startswith("{")
        if answer["choices"][0]["finish_reason"] == "stop":
            assert isinstance(json.loads(text_of(answer)), dict)
            ended += 1
    assert ended, "every answer was cut off by max_tokens"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "weather"}}])
@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_call_that_is_required(server: Server, choice: Any, stream: bool) -> None:
    asked = [{"role": "user", "content": "What is the weather in Oslo?"}]
    fields: dict[str, Any] = {
        "tools": TOOLS,
        "tool_choice": choice,
        "parallel_tool_calls": False,
        "max_tokens": 120,
    }
    if stream:
        chunks = server.chunks(messages=asked, **fields)[:-1]
        assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"
        parts = [call for chunk in chunks for call in chunk["choices"][0]["delta"].get("tool_calls", ())]
        assert len(parts) > 3, "arguments come as they are drawn"
        arguments = "".join(part["function"]["arguments"] for part in parts)
        calls = [parts[0] | {"function": parts[0]["function"] | {"arguments": arguments}}]
    else:
        found = server.ask(messages=asked, **fields)["choices"][0]
        assert (found["finish_reason"], found["message"]["content"]) == ("tool_calls", None)
        calls = found["message"]["tool_calls"]
    (call,) = calls
    if call["function"]["name"] == "weather":
        require_city(call["function"]["arguments"])
    else:
        assert (call["function"]["name"], choice) == ("clock", "required")
        json.loads(call["function"]["arguments"])
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "Rain, 7 degrees."}
    assert text_of(server.ask(messages=[*asked, said, result], tools=TOOLS, max_tokens=10))


def test_fields_without_effect_are_named(server: Server) -> None:
    response = server.post(**ASKED, max_tokens=1, no_such_field="x", top_a=1)
    assert response.status_code == 200
    assert response.headers["x-hotprefix-ignored"] == "no_such_field, top_a"
