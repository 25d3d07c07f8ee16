"""Request files of every kind: what is found in them, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotprefix.doctor.dialect import Dialect, dialect_of
from hotprefix.doctor.reading import UnreadableFile, read_requests

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
CLAUDE = {
    "model": "c",
    "max_tokens": 5,
    "system": "Be kind.",
    "messages": [{"role": "user", "content": "Hi"}],
}
TOOL = {"model": "c", "max_tokens": 5, "messages": [], "tools": [{"name": "t", "input_schema": {}}]}
RESULT = {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1"}]}]}
NATIVE = {"model": "q", "input": {"messages": CHAT["messages"]}, "parameters": {}}
RESPONSES = {"model": "m", "input": "Hi"}


@pytest.mark.parametrize(
    ("body", "url", "dialect"),
    [
        (CHAT, "", Dialect.CHAT),
        (CHAT, "https://api.anthropic.com/v1/messages?beta=true", Dialect.ANTHROPIC),
        (CLAUDE, "", Dialect.ANTHROPIC),
        (CLAUDE, "/v1/chat/completions", Dialect.CHAT),
        (TOOL, "", Dialect.ANTHROPIC),
        (RESULT, "", Dialect.ANTHROPIC),
        (NATIVE, "", Dialect.DASHSCOPE),
        ({"model": "q", "input": {"prompt": "Hi"}}, "", Dialect.DASHSCOPE),
        (RESPONSES, "", Dialect.RESPONSES),
        ({"model": "m", "input": [{"role": "user", "content": "Hi"}]}, "", Dialect.RESPONSES),
        ({"model": "m", "prompt": "Hi"}, "", None),
        ({}, "", None),
    ],
)
def test_dialects(body: dict[str, Any], url: str, dialect: Dialect | None) -> None:
    assert dialect_of(body, url) is dialect


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_one_body_a_list_of_bodies_and_lines(tmp_path: Path) -> None:
    one = write(tmp_path / "one.json", json.dumps(CHAT, indent=2))
    many = write(tmp_path / "many.json", json.dumps([CHAT, NATIVE]))
    lines = write(
        tmp_path / "log.jsonl", json.dumps(CHAT) + "\n\n" + json.dumps({"x": 1}) + "\n" + json.dumps(NATIVE)
    )
    misnamed = write(tmp_path / "log.json", json.dumps(CHAT) + "\n" + json.dumps(NATIVE) + "\n")
    assert [found.body for found in read_requests(one)] == [CHAT]
    assert [found.dialect for found in read_requests(many)] == [Dialect.CHAT, Dialect.DASHSCOPE]
    assert [found.place.line for found in read_requests(lines)] == [1, 4]
    assert [found.place.line for found in read_requests(misnamed)] == [1, 2]


def test_yaml_documents(tmp_path: Path) -> None:
    file = write(
        tmp_path / "r.yaml",
        "model: m\nmessages:\n  - {role: user, content: Hi}\n---\nmodel: q\ninput: {prompt: Hi}\n",
    )
    assert [(found.dialect, found.place.line) for found in read_requests(file)] == [
        (Dialect.CHAT, 1),
        (Dialect.DASHSCOPE, 5),
    ]


def test_what_stands_around_a_body(tmp_path: Path) -> None:
    line = {
        "request": {"url": "/v1/messages", "headers": {"X-Id": "7"}, "body": CHAT},
        "response": {"usage": {"input_tokens": 3}},
        "timestamp": "2026-03-01T00:00:10+00:00",
        "ttft": 0.25,
        "session_id": "s1",
    }
    batch = {
        "custom_id": "1",
        "method": "POST",
        "url": "/v1/responses",
        "body": {"model": "m", "input": "Hi"},
    }
    text = {"request_body": json.dumps(CHAT), "start_time": 1_772_323_210_000}
    file = write(tmp_path / "log.jsonl", "\n".join(json.dumps(one) for one in (line, batch, text)))
    first, second, third = read_requests(file)
    assert (first.dialect, first.body, first.session) == (Dialect.ANTHROPIC, CHAT, "s1")
    assert (first.at, first.first_token, first.headers) == (1_772_323_210.0, 0.25, {"x-id": "7"})
    assert first.response == {"usage": {"input_tokens": 3}}
    assert second.dialect is Dialect.RESPONSES
    assert (third.body, third.at) == (CHAT, 1_772_323_210.0)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.json", '{"model": }', r"a\.json:1:11 is no JSON"),
        ("a.jsonl", '{"a": 1}\n{"b"\n', r"a\.jsonl:2 is no JSON"),
        ("a.yaml", "a: [1\nb: 2\n", r"a\.yaml:2 is no YAML"),
        ("a.json", '{"a": 1}', "has no request in it"),
        ("a.jsonl", "", "has no request in it"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    with pytest.raises(UnreadableFile, match=words):
        list(read_requests(write(tmp_path / name, text)))


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="No such file"):
        list(read_requests(tmp_path / "none.json"))
    binary = tmp_path / "b.json"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UnreadableFile, match="no UTF-8"):
        list(read_requests(binary))


def test_times_of_yaml_and_milliseconds_in_strings(tmp_path: Path) -> None:
    body = "body: {model: m, messages: [{role: user, content: Hi}]}"
    path = tmp_path / "a.yaml"
    path.write_text(
        f"timestamp: 2026-11-30T10:00:00Z\n{body}\n---\ntimestamp: 2026-11-30 10:00:00\n{body}\n"
        f"---\ntimestamp: '1796032800000'\n{body}\n",
        encoding="utf-8",
    )
    assert [one.at for one in read_requests(path)] == [1796032800.0] * 3
