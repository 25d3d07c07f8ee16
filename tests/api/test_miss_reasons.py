"""What users do to their caches, case by case, over HTTP: two requests, and what the second one is told.

The engine of these tests gives nothing from the cache unless told to, so every loss shows.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.prompt.preprocess.catalogue import StepName
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process

pytestmark = pytest.mark.anyio

RULES = "\n".join(f"Rule {n}: goods of kind {n * 7} stand on shelf {n * 13}." for n in range(50))
MARK = {"cache_control": {"type": "ephemeral"}}
Body = dict[str, Any]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000.0)


@pytest.fixture
async def server(anyio_backend: str, clock: ManualClock) -> AsyncIterator[Server]:
    engine = ScriptedEngine(context_length=32_768)
    engine.share = 0.0
    async with in_process(engine, profile="dashscope-2026-03", clock=clock) as server:
        yield server


async def ask(server: Server, body: Body, headers: dict[str, str] | None = None) -> httpx.Headers:
    response = await server.client.post(
        "/v1/chat/completions", json={"model": "scripted"} | body, headers=headers or {}
    )
    assert response.status_code == 200, response.text
    return response.headers


def told(headers: httpx.Headers) -> tuple[str, str, str]:
    """Reason, detail and the path of the first difference."""
    place = headers.get("x-hotprefix-divergence", "").split(";")[0]
    return headers["x-hotprefix-miss-reason"], headers.get("x-hotprefix-miss-detail", ""), place


def chat(*texts: str, system: str = RULES, **more: Any) -> Body:
    """A system prompt, and texts of user and assistant in turn."""
    roles = ("user", "assistant")
    talk = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"messages": [{"role": "system", "content": system}, *talk]} | more


def spoken(*parts: str) -> Body:
    """A user message of several blocks."""
    content = [{"type": "text", "text": part} for part in parts]
    return {"messages": [{"role": "system", "content": RULES}, {"role": "user", "content": content}]}


def turns(first: int, last: int) -> list[str]:
    return [
        f"Message {n}: box {n * 3} stands at gate {n * 5}, second row, near the door."
        for n in range(first, last)
    ]


def tool(name: str, **properties: str) -> Body:
    schema = {"type": "object", "properties": {key: {"type": kind} for key, kind in properties.items()}}
    function = {"name": name, "description": f"Tells all about {name}, in few words.", "parameters": schema}
    return {"type": "function", "function": function}


TOOLS = [tool(name, city="string", unit="string") for name in ("a", "b", "c", "d", "e", "f", "g")]


def reworded(tools: list[Body], at: int) -> list[Body]:
    """One word of a description is another."""
    changed = json.loads(json.dumps(tools))
    changed[at]["function"]["description"] = changed[at]["function"]["description"].replace("few", "many")
    return list(changed)


def turned_round(tools: list[Body]) -> list[Body]:
    """Keys of the schemas in another order."""
    changed = json.loads(json.dumps(tools))
    for one in changed:
        schema = one["function"]["parameters"]
        schema["properties"] = dict(reversed(schema["properties"].items()))
    return list(changed)


def clocked(second: int, *, at_end: bool = False) -> str:
    stamp = f"Report time 2031-04-05T10:00:0{second}"
    return f"{RULES}\n{stamp}" if at_end else f"{stamp}\n{RULES}"


CASES: dict[str, tuple[Body, Body, tuple[str, str, str]]] = {
    "T01": (
        chat("Where?", system=clocked(1)),
        chat("Where?", system=clocked(2)),
        ("SYSTEM_CHANGED", "VOLATILE_TIME", "messages[0].content"),
    ),
    "T02": (
        chat(*turns(0, 15), system=clocked(1, at_end=True)),
        chat(*turns(0, 15), system=clocked(2, at_end=True)),
        ("SYSTEM_CHANGED", "VOLATILE_TIME", "messages[0].content"),
    ),
    "T12": (
        chat(*turns(0, 20)),
        chat(*turns(2, 20), "And now?", "Well."),
        ("HEAD_TRIMMED", "2", "messages[1].content"),
    ),
    "T14": (
        spoken("Reminder: answer in short sentences.", "Where is box 7? " * 9),
        spoken("Where is box 7? " * 9),
        ("BLOCK_VANISHED", "user", "messages[1].content[0]"),
    ),
}


@pytest.mark.parametrize("case", CASES)
async def test_changes_are_told_with_their_place(server: Server, case: str) -> None:
    first, second, expected = CASES[case]
    assert told(await ask(server, first))[0] == "COLD_FIRST_USE"
    headers = await ask(server, second)
    assert told(headers) == expected
    assert headers["x-hotprefix-evidence"] == "proved by bytes"
    assert int(headers["x-hotprefix-lost-tokens"]) > 100


def with_tools(tools: list[Body]) -> Body:
    return chat("Where?", tools=tools)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(lambda tools: [tools[-1], *tools[:-1]], ("TOOLS_REORDERED", "g", "tools[0]"), id="T04"),
        pytest.param(
            lambda tools: reworded(tools, 6),
            ("TOOLS_CHANGED", "g", "tools[6].function.description"),
            id="T05",
        ),
        pytest.param(turned_round, ("ARG_KEY_ORDER", "SCHEMA_KEY_ORDER", ""), id="T06"),
    ],
)
async def test_changes_of_tools_are_told(
    server: Server, change: Callable[[list[Body]], list[Body]], expected: tuple[str, str, str]
) -> None:
    await ask(server, with_tools(TOOLS))
    reason, detail, place = told(await ask(server, with_tools(change(TOOLS))))
    assert (reason, detail) == expected[:2]
    assert place.startswith(expected[2] or "tools[0].function.parameters")


async def test_t15_a_constant_that_looks_volatile_is_no_change(server: Server) -> None:
    system = f"Document 8c4f1e2a9b7d4036a1f5c2e8d9b0a7f3.\n{RULES}"
    server.engine.share = 1.0
    for question in ("Where?", "Who?", "Why?"):
        headers = await ask(server, chat(question, system=system))
        assert told(headers)[0] in ("COLD_FIRST_USE", "NONE")
        assert "VOLATILE" not in headers.get("x-hotprefix-miss-detail", "")


def marked(text: str, *, behind: str = "") -> Body:
    """A marked system prompt, and text behind the marker."""
    part = {"type": "text", "text": text, **MARK}
    return {"messages": [{"role": "system", "content": [part]}, {"role": "user", "content": behind or "Q"}]}


async def test_t16_one_token_is_missing(server: Server) -> None:
    size = 1023 - len("system: ")
    headers = await ask(server, marked("x" * size))
    assert told(headers)[:2] == ("BELOW_MIN", "1")


async def test_t20_a_marker_on_the_newest_message_is_written_and_never_read(server: Server) -> None:
    for question in ("Where is the first box?", "Who came?", "How heavy is it, and why?", "Any news today?"):
        part = {"type": "text", "text": question, **MARK}
        talk = [{"role": "system", "content": RULES}, {"role": "user", "content": [part]}]
        headers = await ask(server, {"messages": talk})
    assert told(headers)[:2] == ("WRITE_ONLY", "3")
    assert headers["x-hotprefix-avoidable"] == "true"


async def test_t23_what_changes_behind_the_marker_is_no_break(server: Server) -> None:
    await ask(server, marked(RULES, behind="Where is box 7? " * 20))
    headers = await ask(server, marked(RULES, behind="Another question, and a long one. " * 20))
    assert told(headers)[0] == "NONE"
    assert int(headers["x-hotprefix-matched-tokens"]) == len(f"system: {RULES}")


async def test_t26_five_minutes_from_the_last_hit(server: Server, clock: ManualClock) -> None:
    await ask(server, marked(RULES))
    clock.advance(299)
    assert told(await ask(server, marked(RULES)))[0] == "NONE"
    clock.advance(301)
    headers = await ask(server, marked(RULES))
    assert told(headers)[:2] == ("TTL_EXPIRED", "1 s after the end of 300 s")
    assert headers["x-hotprefix-evidence"] == "proved by the store's log"


ODD = ["\u007f", "\u2028", "</script>", "\x00", "\u0001", "\U0001f469\u200d\U0001f52c", "\ufdd0", "\u202e"]


@pytest.mark.parametrize("steps", ["none", *StepName, ",".join(StepName)])
async def test_t11_odd_characters_pass_every_step(server: Server, steps: str) -> None:
    for odd in ODD:
        body = chat(f"Is {odd} odd?", f"It {odd} is.", f"{odd}", system=f"{odd}{RULES}{odd}", tools=TOOLS[:1])
        headers = await ask(server, body, {"x-hotprefix-preprocess": steps})
        assert headers["x-hotprefix-miss-reason"]
        sent = bytes(server.engine.seen[-1].prompt_ids).decode()
        if steps == "none":
            assert f"user: Is {odd} odd?\nassistant: It {odd} is.\nuser: {odd}\nassistant: " in sent


async def test_t11_a_lone_surrogate_is_refused_and_breaks_nothing(server: Server) -> None:
    body = b'{"model": "scripted", "messages": [{"role": "user", "content": "\\ud800"}]}'
    response = await server.client.post("/v1/chat/completions", content=body)
    assert (response.status_code, response.json()["error"]["code"]) == (400, "invalid_json")
