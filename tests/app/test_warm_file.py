"""Files of prefixes in every form, and what is said of bad ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hotprefix.app.warm_file import BadWarmFile, Prefix, read_warm_files

MESSAGES = [{"role": "system", "content": "Rules."}]
CHAT = Prefix("f", "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 1, "temperature": 0})
NAMED = Prefix("f", "/v1/caches", {"name": "shop", "text": "Rules.", "ttl": 60})


def read(folder: Path, name: str, text: str) -> list[Prefix]:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return read_warm_files([path])


def bare(prefixes: list[Prefix]) -> list[tuple[str, object]]:
    return [(prefix.path, prefix.body) for prefix in prefixes]


def test_every_form_says_the_same(tmp_path: Path) -> None:
    entries = [{"messages": MESSAGES}, NAMED.body]
    forms = {
        "a.jsonl": "\n".join(map(json.dumps, entries)) + "\n\n",
        "a.json": json.dumps(entries),
        "a.yaml": "- messages:\n  - {role: system, content: Rules.}\n- {name: shop, text: Rules., ttl: 60}\n",
        "b.yml": "messages:\n- {role: system, content: Rules.}\n---\nname: shop\ntext: Rules.\nttl: 60\n",
    }
    for name, text in forms.items():
        assert bare(read(tmp_path, name, text)) == bare([CHAT, NAMED]), name
    assert bare(read(tmp_path, "rules.txt", "Rules.")) == bare([CHAT])
    labels = [prefix.label for prefix in read(tmp_path, "a.json", forms["a.json"])]
    assert labels == ["a.json:1", "a.json:2 (shop)"]


def test_only_what_makes_the_prompt_is_sent(tmp_path: Path) -> None:
    body = {"model": "m", "messages": MESSAGES, "stream": True, "n": 5, "max_tokens": 900, "tools": []}
    (prefix,) = read(tmp_path, "a.json", json.dumps(body | {"tool_choice": "none"}))
    assert prefix.body == {
        "model": "m",
        "messages": MESSAGES,
        "tools": [],
        "tool_choice": "none",
        "max_tokens": 1,
        "temperature": 0,
    }


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "{", "a.json is no valid JSON"),
        ("a.jsonl", '{"messages": []}\n{', "a.jsonl is no valid JSON"),
        ("a.yaml", "a: [", "a.yaml is no valid YAML"),
        ("a.json", "[]", "a.json has no prefix"),
        ("a.txt", "  \n", "a.txt has no prefix"),
        ("a.json", "[1]", "a.json: an entry is an object"),
        ("a.json", '[{"messages": []}, {"text": "x"}]', "a.json:2: 'messages' are missing; a 'text' needs"),
        ("a.json", '{"name": "x"}', "either 'messages' or 'text'"),
        ("a.json", "[" * 100_000, "a.json is nested too deeply"),
        ("a.json", '{"name": "x", "text": "y", "ttl": NaN}', "a.json: this can't be sent as JSON"),
        ("a.json", '{"name": "x", "text": "\\ud800"}', "a.json: this can't be sent as JSON"),
        ("a.yaml", "name: x\ntext: y\nttl: 2026-01-01\n", "put dates and times in quotes"),
        ("a.yaml", "name: x\ntext: &a [*a]\n", "this can't be sent as JSON"),
    ],
)  # fmt: skip
def test_a_bad_file_is_told_by_name_and_entry(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(BadWarmFile, match=says):
        read(tmp_path, name, text)


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(BadWarmFile, match="No such file"):
        read_warm_files([tmp_path / "nothing.json"])
    (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadWarmFile, match="no UTF-8"):
        read_warm_files([tmp_path / "a.txt"])


def test_a_line_ends_where_json_lines_end(tmp_path: Path) -> None:
    """Not at the line separators that a text may hold."""
    said = [{"role": "system", "content": "a\u2028b\u0085c"}]
    text = json.dumps({"messages": said}, ensure_ascii=False)
    found = read(tmp_path, "a.jsonl", f"{text}\r\n{text}\n")
    assert [prefix.body["messages"] for prefix in found] == [said, said]
