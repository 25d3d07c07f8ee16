"""Whatever a log holds, a request is judged or named as unreadable; nothing else happens."""

from __future__ import annotations

import copy
import json
import random
from itertools import pairwise
from typing import Any

import pytest

from hotprefix.doctor.explain.stages import compare_stages
from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import recorded_of
from hotprefix.doctor.rendering import UnrenderableRequest
from tests.doctor.explain.support import MARK, RULES, Body, Court, chat, part

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
TOOL = {
    "type": "function",
    "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}},
}
BODIES: list[Body] = [
    chat("Where?", "Here.", "Why?", tools=[TOOL], chat_template_kwargs={"a": 1}, enable_thinking=False),
    {
        "model": "gpt-5",
        "messages": [
            {"role": "system", "content": [part(RULES, marked=True)]},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c1", "content": "box"},
        ],
    },
    {
        "model": "qwen-plus",
        "instructions": RULES,
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Where?"}]},
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "box"},
        ],
        "previous_response_id": "r0",
        "tools": [{"type": "function", "name": "look", "parameters": {}}],
    },
    {
        "model": "qwen-plus",
        "input": {
            "messages": [{"role": "system", "content": [{"text": RULES}]}, {"role": "user", "content": "?"}]
        },
        "parameters": {"tools": [TOOL], "enable_thinking": True},
    },
    {
        "model": "claude-sonnet-4-6",
        "system": [part(RULES, marked=True)],
        "tools": [{"name": "look", "input_schema": {"type": "object"}, **MARK}],
        "messages": [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "box"}]},
        ],
    },
]
RESPONSE = {
    "id": "r1",
    "usage": {"prompt_tokens": 2_000, "input_tokens": 10, "prompt_tokens_details": {"cached_tokens": 9}},
    "choices": [{"message": {"role": "assistant", "content": "Here."}}],
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}],
    "content": [{"type": "text", "text": "Here."}],
}
ODD: list[Any] = [
    None,
    "",
    "x",
    0,
    -1,
    1.5,
    True,
    [],
    {},
    [None],
    [[]],
    {"type": "x"},
    {"text": 1},
    "\ud800",
    "\x00",
    ["x"],
]


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(spot for key, item in inner for spot in spots(item, (*path, key)))]


def spoiled(document: Body, chance: random.Random) -> Body:
    """One or two places of it hold something else, or nothing."""
    document = copy.deepcopy(document)
    for _ in range(chance.randint(1, 2)):
        *way, last = chance.choice([spot for spot in spots(document) if spot])
        holder: Any = document
        for key in way:
            holder = holder[key]
        if chance.random() < 0.3:
            del holder[last]
        else:
            holder[last] = copy.deepcopy(chance.choice(ODD))
    return document


@pytest.mark.parametrize("seed", range(4))
def test_spoiled_requests(seed: int) -> None:
    chance, court, judged = random.Random(seed), Court(), []
    for line in range(1, 251):
        document = {"request": chance.choice(BODIES), "response": RESPONSE, "timestamp": 1_790_000_000 + line}
        found = recorded_of(spoiled(document, chance), Place("log.jsonl", line))
        if found is None:
            continue
        try:
            judged.append(court.trial.judge(court.renderer.render(found)))
        except UnrenderableRequest as error:
            assert str(error).startswith(f"log.jsonl:{line}")
    assert len(judged) > 150
    for one, other in pairwise(judged[:40]):
        assert compare_stages(one.rendered, other.rendered)


def test_the_whole_ones_are_all_judged() -> None:
    court = Court()
    for document in BODIES:
        for _ in range(2):
            judged = court.judge({"request": json.loads(json.dumps(document))})
        assert judged.expected.lost_tokens == 0
