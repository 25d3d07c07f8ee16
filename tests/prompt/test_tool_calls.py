"""Tool calls in a model's answer, whole and streamed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.prompt.tool_calls import ToolCall, ToolCallScanner, parse_tool_calls

ONE = '<tool_call>{"name": "f", "arguments": {"x":  1}}</tool_call>'


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ("plain", "plain", []),
        ("", "", []),
        (ONE, "", [("f", '{"x":  1}')]),
        ("Sure.\n" + ONE, "Sure.", [("f", '{"x":  1}')]),
        (ONE + "\n" + ONE + " bye ", "bye ", [("f", '{"x":  1}')] * 2),
        ('<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>', "", [("f", "{}")]),
        (
            '<tool_call>[{"name": "f", "arguments": {"a": [1, {"b": 2}]}}, '
            '{"arguments": {}, "name": "g"}]</tool_call>',
            "",
            [("f", '{"a": [1, {"b": 2}]}'), ("g", "{}")],
        ),
        ('<tool_call>{"name": "f"}\n{"name": "g"}</tool_call>', "", [("f", "{}"), ("g", "{}")]),
        ("<tool_call>[]</tool_call>", "", []),
        ('<tool_call>{"name": "f", "parameters": {"y": 2}}</tool_call>', "", [("f", '{"y": 2}')]),
        ('<tool_call>{"name": "f", "arguments": "{\\"y\\": 2}"}</tool_call>', "", [("f", '{"y": 2}')]),
        ('<tool_call>{"name": "f", "arguments": {"x": 1}}', "", [("f", '{"x": 1}')]),
        (
            '<tool_call>{"name": "f", "arguments": {"s": "</tool_call>"}}</tool_call>!',
            "!",
            [("f", '{"s": "</tool_call>"}')],
        ),
        ('<tool_call>{"name": "f", "arguments": {"s": "a\nb"}}</tool_call>', "", [("f", '{"s": "a\\nb"}')]),
        ("oops <tool_call>" + ONE, "oops <tool_call>", [("f", '{"x":  1}')]),
    ],
)
def test_calls_are_read(text: str, content: str, calls: list[tuple[str, str]]) -> None:
    assert parse_tool_calls(text) == (content, [ToolCall(*call) for call in calls])


@pytest.mark.parametrize(
    "text",
    [
        "a \n<tool_call>{not json}</tool_call> b",
        '<tool_call>{"name": "f", "arguments": [1]}</tool_call>',
        '<tool_call>{"name": 3, "arguments": {}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"x": NaN}}</tool_call>',
        '<tool_call>{"name": "f", "arguments": {"x": "unterminated}}</tool_call> and more',
        '<tool_call>{"name": "f", "argum',
        "<tool_call>",
        "<tool_call></tool_call>",
        "text with a trailing space and <tool_",
        "  \n",
        "<tool_call>" + "[" * 5000 + "</tool_call>",
    ],
)
def test_what_is_no_call_stays_unchanged(text: str) -> None:
    assert parse_tool_calls(text) == (text, [])


FRAGMENTS = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        '{"name": "f", "arguments": {}}',
        ONE,
        "[",
        "]",
        '"',
        " ",
        "\n",
        "x",
        "<tool",
        "{",
    ]
)


@settings(max_examples=500, deadline=None)
@given(st.lists(FRAGMENTS, max_size=12), st.data())
def test_the_cut_into_pushes_does_not_matter(fragments: list[str], data: st.DataObject) -> None:
    text = "".join(fragments)
    scanner, content, calls, at = ToolCallScanner(), "", [], 0
    while at < len(text):
        size = data.draw(st.integers(1, 9))
        step = scanner.push(text[at : at + size])
        content, calls, at = content + step.content, [*calls, *step.calls], at + size
    step = scanner.finish()
    assert (content + step.content, [*calls, *step.calls]) == parse_tool_calls(text)


def test_content_streams_at_once_and_calls_when_they_close() -> None:
    scanner = ToolCallScanner()
    assert scanner.push("Let me see").content == "Let me see"
    assert scanner.push(". <tool").content == "."
    assert scanner.push("box> is").content == " <toolbox> is"
    assert scanner.push(ONE[:-1]).calls == ()
    assert scanner.push(ONE[-1]).calls == (ToolCall("f", '{"x":  1}'),)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(), max_size=4))
def test_arguments_survive_byte_for_byte(arguments: dict[str, object]) -> None:
    raw = json.dumps(arguments, ensure_ascii=False)
    text = f'<tool_call>{{"name": "f", "arguments": {raw}}}</tool_call>'
    assert parse_tool_calls(text) == ("", [ToolCall("f", raw)])
