"""Tools for templates without tools: instructions, history, the forcing grammar."""

from __future__ import annotations

import json
from typing import Any

import llguidance
import pytest

from hotprefix.base.errors import InvalidRequest
from hotprefix.prompt.tool_calls import parse_tool_calls
from hotprefix.prompt.tools import call_text, tool_call_lark, write_tools_into

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Wetter für eine Stadt",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}
CLOCK: dict[str, Any] = {"type": "function", "function": {"name": "时钟"}}
USER = {"role": "user", "content": "hi"}


def _call(name: str, arguments: Any) -> dict[str, Any]:
    return {"id": "x", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_tools_end_the_system_message_in_the_order_given() -> None:
    system, user = write_tools_into([{"role": "system", "content": "Be kind."}, USER], [WEATHER, CLOCK])
    assert system["content"].startswith("Be kind.\n\nYou can call")
    lines = system["content"].splitlines()
    listed = lines[lines.index("<tools>") + 1 : lines.index("</tools>")]
    assert listed == [json.dumps(WEATHER, ensure_ascii=False), json.dumps(CLOCK, ensure_ascii=False)]
    assert '<tool_call>{"name": "function-name", "arguments": {"parameter": "value"}}</tool_call>' in lines
    assert user == USER


def test_a_system_message_is_made_if_there_is_none() -> None:
    assert [m["role"] for m in write_tools_into([USER], [CLOCK])] == ["system", "user"]
    assert write_tools_into([USER], []) == [USER]


def test_history_becomes_text() -> None:
    history = [
        USER,
        {"role": "assistant", "content": None, "tool_calls": [_call("f", '{"a":1}'), _call("g", {"b": 2})]},
        {"role": "tool", "tool_call_id": "x", "content": "one"},
        {"role": "tool", "tool_call_id": "y", "content": [{"type": "text", "text": "two"}]},
        {"role": "assistant", "content": "Done.", "tool_calls": [_call("f", "")]},
    ]
    plain = write_tools_into(history, [])
    assert [m["role"] for m in plain] == ["user", "assistant", "user", "assistant"]
    assert plain[1]["content"] == call_text("f", '{"a":1}') + "\n" + call_text("g", '{"b": 2}')
    assert plain[2]["content"] == "<tool_response>one</tool_response>\n<tool_response>two</tool_response>"
    assert plain[3]["content"] == "Done.\n" + call_text("f", "{}")
    assert all("tool_calls" not in message for message in plain)


@pytest.mark.parametrize(
    "answer",
    [
        call_text("f", '{"x":  [1,2], "y": "é\\n"}'),
        "Let me look.\n" + call_text("f", "{}") + "\n" + call_text('g"x', '{"a": {}}'),
    ],
)
def test_an_answer_parsed_and_sent_back_is_the_same_bytes(answer: str) -> None:
    content, calls = parse_tool_calls(answer)
    message = {"role": "assistant", "content": content or None}
    message["tool_calls"] = [_call(call.name, call.arguments) for call in calls]
    assert write_tools_into([message], [])[0]["content"] == answer


def test_calls_without_a_name_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="name"):
        write_tools_into([{"role": "assistant", "tool_calls": [{"id": "x"}]}], [])
    with pytest.raises(InvalidRequest, match="without tools"):
        tool_call_lark([])


def _accepts(grammar: str, text: str) -> bool:
    """Whether the grammar takes exactly `text`, one byte per token."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"<|eos|>"]

    class Bytes:
        eos_token_id = 256
        bos_token_id = None
        special_token_ids = (256,)

        def __init__(self) -> None:
            self.tokens = tokens

        def __call__(self, data: bytes | str) -> list[int]:
            return list(data.encode() if isinstance(data, str) else data)

    tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(Bytes()))
    matcher = llguidance.LLMatcher(tokenizer, grammar)
    assert not matcher.get_error(), matcher.get_error()
    ids = list(text.encode())
    return bool(matcher.try_consume_tokens(ids) == len(ids) and matcher.is_accepting())


GOOD = call_text("get_weather", '{"city": "Köln"}')


def test_the_grammar_takes_calls_that_follow_the_schema() -> None:
    grammar = tool_call_lark([WEATHER, CLOCK], most_calls=2)
    assert _accepts(grammar, GOOD)
    assert _accepts(grammar, call_text("时钟", "{}"))
    assert _accepts(grammar, GOOD + "\n" + GOOD)


@pytest.mark.parametrize(
    "text",
    [
        "no call",
        call_text("get_weather", '{"days": 1}'),
        call_text("get_weather", '{"city": 1}'),
        call_text("other", "{}"),
        GOOD + "\n" + GOOD + "\n" + GOOD,
        GOOD[:-1],
    ],
)
def test_the_grammar_takes_nothing_else(text: str) -> None:
    assert not _accepts(tool_call_lark([WEATHER, CLOCK], most_calls=2), text)
