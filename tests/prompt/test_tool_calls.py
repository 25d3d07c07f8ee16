"""Tool calls in a model's answer, whole and streamed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.prompt.tool_calls import (
    CallOpened,
    CallPart,
    Found,
    ToolCall,
    ToolCallScanner,
    Words,
    folded,
    parse_tool_calls,
)

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
        '<tool_call>{"name": "f", "arguments": {bad}}</tool_call>',
        '<tool_call>{"name": "f\\", "arguments": {"x": 1}}</tool_call>',
        '<tool_call>{"name": "f", "argum',
        '<tool_call>{"name": "f", "arguments": {"x": ',
        "<tool_call>",
        "<tool_call></tool_call>",
        "text with a trailing space and <tool_",
        "  \n",
        "<tool_call>" + "[" * 5000 + "</tool_call>",
    ],
)
def test_what_is_no_call_stays_unchanged(text: str) -> None:
    assert parse_tool_calls(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "content", "calls"),
    [
        ('<tool_call>{"name": "f", "arguments": {"x": 1, "y": "abc', "", [("f", '{"x": 1, "y": "abc')]),
        ('<tool_call>{"name": "f", "arguments": {"x": 1}</tool_call>!', "!", [("f", '{"x": 1}')]),
        ('<tool_call>{"name": "f", "arguments": {"x": 1}}}</tool_call>!', "!", [("f", '{"x": 1}')]),
        ('<tool_call>{"name": "f", "arguments": {"x": [1</tool_call>!', "!", [("f", '{"x": [1')]),
        ('<tool_call>{"name": "f", "arguments": {"x": 1,}}</tool_call>!', "!", [("f", '{"x": 1,}')]),
        ('<tool_call>{"name": "f", "arguments": {"x": "a}}</tool_call>\n', "", [("f", '{"x": "a}}')]),
        ('<tool_call>{"name": "f", "arguments": {"x": 1}\n</tool', "", [("f", '{"x": 1}')]),
        ('<tool_call>{"name": "f", "arguments": {"x": 1\n</tool', "", [("f", '{"x": 1\n')]),
        ('<tool_call>{"name": "f", "arguments": {}} {"name": "g"} ?', "", [("f", "{}")]),
        (
            '<tool_call>{"name": "f", "arguments": {}} {"name": "g"}[{"name": "h"}]</tool_call>',
            "",
            [("f", "{}"), ("g", "{}"), ("h", "{}")],
        ),
        (
            '<tool_call>{"name": "f", "arguments": {}, "id": "</tool"}</tool_call>x',
            "x",
            [("f", "{}")],
        ),
        (
            '<tool_call>{"name": "f\\u0041", "arguments": {"a": "\x01\\" <tool_call>"}}</tool_call>',
            "",
            [("fA", '{"a": "\\u0001\\" <tool_call>"}')],
        ),
    ],
)
def test_a_call_that_has_begun_stays_one(text: str, content: str, calls: list[tuple[str, str]]) -> None:
    assert parse_tool_calls(text) == (content, [ToolCall(*call) for call in calls])


FRAGMENTS = st.sampled_from(
    [
        "<tool_call>",
        "</tool_call>",
        '{"name": "f", "arguments": {}}',
        '{"name": "f", "arguments": {"a": ',
        '"b": "',
        ONE,
        "[",
        "]",
        '"',
        "\\",
        " ",
        "\n",
        "x",
        "<tool",
        "<",
        "{",
        "}",
        "}}",
        "7",
    ]
)


def joined(found: list[Found]) -> list[Found]:
    """Neighbours of a kind as one."""
    whole: list[Found] = []
    for item in found:
        match whole[-1:], item:
            case [[Words(before)], Words(text)]:
                whole[-1] = Words(before + text)
            case [[CallPart(before)], CallPart(arguments)]:
                whole[-1] = CallPart(before + arguments)
            case _:
                whole.append(item)
    return whole


def in_pieces(text: str, sizes: list[int]) -> list[Found]:
    scanner, found, at = ToolCallScanner(), [], 0
    for size in sizes:
        found += scanner.push(text[at : at + size])
        at += size
    return [*found, *scanner.push(text[at:]), *scanner.finish()]


@settings(max_examples=400, deadline=None)
@given(st.lists(FRAGMENTS, max_size=14), st.lists(st.integers(1, 9), max_size=40))
def test_the_cut_into_pushes_does_not_matter(fragments: list[str], sizes: list[int]) -> None:
    text = "".join(fragments)
    whole = joined(in_pieces(text, []))
    assert joined(in_pieces(text, sizes)) == whole
    assert joined(in_pieces(text, [1] * len(text))) == whole
    assert folded(whole) == parse_tool_calls(text)


@settings(max_examples=150, deadline=None)
@given(
    st.recursive(
        st.text(max_size=8)
        | st.integers()
        | st.booleans()
        | st.none()
        | st.sampled_from(["</tool_call>", "<"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    ),
    st.sampled_from([None, 2]),
    st.lists(st.integers(1, 9), max_size=60),
)
def test_arguments_arrive_as_they_were_written(value: object, indent: int | None, sizes: list[int]) -> None:
    raw = json.dumps({"value": value}, ensure_ascii=False, indent=indent)
    text = f'Now.\n<tool_call>\n{{"name": "f", "arguments": {raw}}}\n</tool_call>\nDone.'
    found = joined(in_pieces(text, sizes))
    assert found == [Words("Now."), CallOpened("f"), CallPart(raw), Words("Done.")]


def test_content_and_arguments_stream_at_once() -> None:
    scanner = ToolCallScanner()
    assert scanner.push("Let me see") == [Words("Let me see")]
    assert scanner.push(". <tool") == [Words(".")]
    assert scanner.push("box> is") == [Words(" <toolbox> is")]
    assert scanner.push('\n<tool_call>{"name": "f", "argum') == []
    assert scanner.push('ents": {"code": ') == []
    assert scanner.push('"pri') == [CallOpened("f"), CallPart('{"code": "pri')]
    assert scanner.push("nt(1)\\n") == [CallPart("nt(1)\\n")]
    assert scanner.push('"}') == [CallPart('"}')]
    assert scanner.push("}</tool_") == []
    assert scanner.push("call> bye") == [Words("bye")]


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(), max_size=4))
def test_arguments_survive_byte_for_byte(arguments: dict[str, object]) -> None:
    raw = json.dumps(arguments, ensure_ascii=False)
    text = f'<tool_call>{{"name": "f", "arguments": {raw}}}</tool_call>'
    assert parse_tool_calls(text) == ("", [ToolCall("f", raw)])
