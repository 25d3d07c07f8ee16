"""Every value of a JSON or YAML text is found where it stands."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.doctor.lint.spans import NotJson, SpanNode, find, index_in, json_spans, yaml_spans

KEYS = st.text(st.characters(categories=["L", "N", "P"], exclude_characters="[]."), min_size=1, max_size=5)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


def paths(value: Any, path: str = "") -> list[tuple[str, Any]]:
    found = [(path, value)]
    if isinstance(value, dict):
        for key, item in value.items():
            found += paths(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            found += paths(item, f"{path}[{number}]")
    return found


@given(JSON, st.sampled_from([None, 2]), st.booleans())
def test_json(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    root = json_spans(text)
    for path, expected in paths(value):
        node = find(root, path)
        assert node is not None, path
        assert json.loads(text[node.start : node.end]) == expected


@given(st.text(min_size=1), st.data(), st.booleans())
def test_places_within_strings(said: str, data: st.DataObject, ascii_only: bool) -> None:
    text = json.dumps(said, ensure_ascii=ascii_only)
    node = json_spans(text)
    offset = data.draw(st.integers(0, len(said) - 1))
    index = index_in(node, text, offset)
    if offset:
        rest = json.loads('"' + text[index:])
        assert rest == said[offset:]


@pytest.mark.parametrize("text", ["", "{", "[1,", '{"a"}', '{"a": }', "[1 2]", "tru", "{1: 2}", '"abc'])
def test_what_is_no_json(text: str) -> None:
    with pytest.raises((NotJson, ValueError)):
        json_spans(text)


YAML = """\
model: qwen-plus   # which
messages:
- role: system
  content: |
    One.
    Two: three.
- {role: user, content: "a \\"b\\" c"}
- role: assistant
  content: plain words
"""


def test_yaml() -> None:
    root = next(yaml_spans(YAML))

    def source(path: str) -> str:
        node = find(root, path)
        assert isinstance(node, SpanNode)
        return YAML[node.start : node.end]

    assert source("model") == "qwen-plus"
    assert source("messages[1].content") == '"a \\"b\\" c"'
    assert source("messages[2].content") == "plain words"
    assert yaml.safe_load(source("messages[0].content")) == "One.\nTwo: three.\n"
    literal = find(root, "messages[0].content")
    assert literal is not None
    assert YAML[index_in(literal, YAML, 5) :].startswith("Two: three.")
    assert find(root, "messages[7].content") is None
