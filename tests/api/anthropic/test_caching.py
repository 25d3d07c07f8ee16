"""Markers and what they are billed as. Names give the case of the list of pains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hotprefix.base.clock import ManualClock
from tests.api.anthropic.support import COMPATIBLE, WEATHER, ask, events, text, user
from tests.api.dashscope.support import generate
from tests.api.scripted_engine import PlainTemplate, ScriptedEngine
from tests.api.support import Server, in_process

pytestmark = pytest.mark.anyio

HEAD = len("system: ")
SIZE = 1100 + HEAD
Q = user(text("q"))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
async def claude(anyio_backend: str, clock: ManualClock) -> AsyncIterator[Server]:
    """The server's own profile is DashScope's: Messages have Anthropic's all the same."""
    engine = ScriptedEngine(context_length=16384)
    async with in_process(engine, profile="dashscope-2026-03", clock=clock) as server:
        yield server


def system(letter: str = "s", ttl: str = "5m", size: int = 1100) -> list[dict[str, Any]]:
    return [text(letter * size, ttl)]


async def used(server: Server, **fields: Any) -> tuple[int, int, int]:
    """Read, written for 5 minutes, written for an hour; checks that all classes sum to the prompt."""
    response = await ask(server, **({"messages": [Q]} | fields))
    assert response.status_code == 200, response.text
    usage = response.json()["usage"]
    split = usage["cache_creation"]
    short, long = split["ephemeral_5m_input_tokens"], split["ephemeral_1h_input_tokens"]
    assert usage["cache_creation_input_tokens"] == short + long
    inputs = usage["input_tokens"] + usage["cache_read_input_tokens"] + short + long
    assert inputs == len(server.engine.seen[-1].prompt_ids)
    return usage["cache_read_input_tokens"], short, long


async def refused(server: Server, **fields: Any) -> str:
    response = await ask(server, **({"messages": [Q]} | fields))
    assert response.status_code == 400, response.text
    body = response.json()
    assert body["error"]["type"] == "invalid_request_error"
    return str(body["error"]["message"])


async def test_create_then_read(claude: Server) -> None:
    assert await used(claude, system=system()) == (0, SIZE, 0)
    assert await used(claude, system=system(), messages=[user(text("another"))]) == (SIZE, 0, 0)
    # Nothing is read without a marker, though the server has it.
    assert await used(claude, system="s" * 1100) == (0, 0, 0)


async def test_what_lost_its_blocks_is_not_billed_as_read(claude: Server) -> None:
    long = [user(text("q" * 3000))]
    assert await used(claude, system=system(), messages=long) == (0, SIZE, 0)
    claude.engine.lose_pins()
    claude.engine.share = 0.0
    response = await ask(claude, system=system(), messages=long)
    assert response.json()["usage"]["cache_read_input_tokens"] == 0
    assert response.json()["usage"]["cache_creation_input_tokens"] == SIZE
    assert response.headers["x-hotprefix-miss-reason"] == "EVICTED"
    assert await used(claude, system=system(), messages=long) == (SIZE, 0, 0)


@pytest.mark.parametrize(("tokens", "written"), [(1023, 0), (1024, 1024), (1025, 1025)])
async def test_t16_the_minimum(claude: Server, tokens: int, written: int) -> None:
    assert await used(claude, system=system(size=tokens - HEAD)) == (0, written, 0)


async def test_t17_five_markers_are_refused_by_name(claude: Server) -> None:
    blocks = [text("u" * 300, "5m") for _ in range(4)]
    assert (await used(claude, messages=[user(*blocks)]))[1] > 1024
    message = await refused(claude, system=system(), messages=[user(*blocks)])
    assert message.startswith("A maximum of 4 blocks with cache_control may be provided. Found 5")
    assert "system[0].cache_control" in message
    assert "messages[0].content[3].cache_control" in message
    # The automatic marker takes one of the four places.
    more = [*blocks, text("last")]
    assert "Found 5" in await refused(claude, messages=[user(*more)], cache_control={"type": "ephemeral"})


async def test_t17_on_dashscopes_route_the_last_four_count(claude: Server) -> None:
    blocks = [text("u" * 1100, "5m") for _ in range(5)]
    response = await ask(claude, path=COMPATIBLE, messages=[user(*blocks)])
    assert response.status_code == 200
    assert "messages[0].content[0].cache_control" in response.headers["x-hotprefix-warning"]


@pytest.mark.parametrize(("between", "hits"), [(18, True), (19, False)])
async def test_t18_the_markers_own_place_is_one_of_twenty(claude: Server, between: int, hits: bool) -> None:
    await used(claude, system=system())
    blocks = [text("m") for _ in range(between)]
    read, _, _ = await used(claude, system=[text("s" * 1100)], messages=[user(*blocks, text("last", "5m"))])
    assert (read == SIZE) == hits


async def test_t18_a_second_marker_opens_a_second_window(claude: Server) -> None:
    await used(claude, system=system())
    blocks = [text("m") for _ in range(40)]
    read, written, _ = await used(claude, system=system(), messages=[user(*blocks, text("last", "5m"))])
    assert (read, written > 0) == (SIZE, True)


async def test_t26_five_minutes_and_an_hour(claude: Server, clock: ManualClock) -> None:
    await used(claude, system=system("a"))
    await used(claude, system=system("b", "1h"))
    clock.advance(299)
    assert await used(claude, system=system("a")) == (SIZE, 0, 0)
    clock.advance(299)
    assert await used(claude, system=system("a")) == (SIZE, 0, 0)
    clock.advance(301)
    assert await used(claude, system=system("a")) == (0, SIZE, 0)
    assert await used(claude, system=system("b", "1h")) == (SIZE, 0, 0)
    clock.advance(3601)
    assert await used(claude, system=system("b", "1h")) == (0, 0, SIZE)


async def test_t27_of_eight_at_once_one_creates(claude: Server) -> None:
    found = await asyncio.gather(*(used(claude, system=system()) for _ in range(8)))
    assert sorted(found) == [(0, SIZE, 0)] + [(SIZE, 0, 0)] * 7


async def test_an_entry_can_be_read_as_soon_as_the_answer_begins(claude: Server) -> None:
    claude.engine.hold_after = 1
    first = asyncio.create_task(ask(claude, system=system(), messages=[Q]))
    await claude.engine.held.wait()
    claude.engine.held.clear()
    second = asyncio.create_task(ask(claude, system=system(), messages=[Q], stream=True))
    await claude.engine.held.wait()
    claude.engine.release()
    created = (await first).json()["usage"]
    assert created["cache_creation_input_tokens"] == SIZE
    assert '"cache_read_input_tokens":1108' in (await second).text


async def test_t31_mixed_lifetimes_are_billed_one_after_the_other(claude: Server) -> None:
    messages = [user(text("u" * 1500, "1h"), text("v" * 200, "5m"), text("rest"))]
    begin = SIZE + len("\nuser: ")
    fields = {"system": system("s", "1h"), "messages": messages}
    assert await used(claude, system=system("s", "1h")) == (0, 0, SIZE)
    assert await used(claude, **fields) == (SIZE, 200, begin + 1500 - SIZE)
    assert await used(claude, **fields) == (begin + 1700, 0, 0)


async def test_longer_lifetimes_come_first(claude: Server) -> None:
    message = await refused(claude, system=system(), messages=[user(text("u", "1h"))])
    assert message == "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block"
    tool = WEATHER | {"cache_control": {"type": "ephemeral"}}
    assert "ttl='1h'" in await refused(claude, tools=[tool], system=system("s", "1h"))
    nested = {"type": "tool_result", "tool_use_id": "t", "content": [text("r", "1h")]}
    called = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "f", "input": {}}]}
    assert "ttl='1h'" in await refused(claude, system=system(), messages=[Q, called, user(nested)])


async def test_tools_with_the_longer_lifetime_may_go_before_any_system_block(claude: Server) -> None:
    tool = WEATHER | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    blocks = [text("s" * 1100, "5m"), text("t" * 100)]
    read, short, long = await used(claude, tools=[tool], system=blocks)
    assert (read, short > 0, long > 0) == (0, True, True)


@pytest.mark.parametrize("handles_tools", [True, False])
async def test_a_marker_on_a_tool_covers_system_and_tools(clock: ManualClock, handles_tools: bool) -> None:
    class Template(PlainTemplate):
        pass

    Template.handles_tools = handles_tools
    engine = ScriptedEngine(context_length=16384)
    engine.model = _with_template(engine, Template())
    tool = WEATHER | {"cache_control": {"type": "ephemeral"}}
    async with in_process(engine, profile="anthropic-2026-09", clock=clock) as server:
        read, written, _ = await used(server, tools=[WEATHER, tool | {"name": "b"}], system="s" * 1100)
        assert read == 0
        prompt = engine.model.tokenizer.decode(engine.seen[-1].prompt_ids[:written])
        assert prompt.endswith("user: ")
        assert "Tells it." in prompt
        assert "s" * 1100 in prompt
        fields = {"tools": [WEATHER, tool | {"name": "b"}], "system": "s" * 1100}
        assert await used(server, **fields, messages=[user(text("other"))]) == (written, 0, 0)
        # A marker on the system message is at the same place: its prefix has the tools too.
        marked = {"tools": [WEATHER, WEATHER | {"name": "b"}], "system": system()}
        assert await used(server, **marked) == (written, 0, 0)
        changed = {"tools": [WEATHER, WEATHER | {"name": "c"}], "system": system()}
        assert (await used(server, **changed))[0] == 0


async def test_markers_on_calls_and_results(claude: Server) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    called = {"type": "tool_use", "id": "t", "name": "weather", "input": {"city": "Paris"}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": "sunny"}
    start = [user(text("u" * 1100))]

    async def read(*blocks: dict[str, Any], ends: dict[str, Any]) -> tuple[int, int]:
        messages = [*start, {"role": "assistant", "content": list(blocks)}, user(ends)]
        found = await used(claude, messages=messages)
        return found[0], found[1]

    _, written = await read(called | mark, ends=result)
    prompt = claude.engine.model.tokenizer.decode(claude.engine.seen[-1].prompt_ids[:written])
    assert prompt.endswith("tool: ")
    assert await read(called, ends=result | mark) == (written, len("sunny"))
    assert await read(called, ends=result | mark) == (written + len("sunny"), 0)


async def test_the_automatic_marker(claude: Server) -> None:
    mark = {"type": "ephemeral"}
    messages = [user(text("u" * 1100))]
    size = 1100 + len("user: ")
    assert await used(claude, messages=messages, cache_control=mark) == (0, size, 0)
    longer = [*messages, {"role": "assistant", "content": "a"}, user(text("more"))]
    read, written, _ = await used(claude, messages=longer, cache_control=mark)
    assert (read, written) == (size, len("\nassistant: a\nuser: more"))
    # There already: nothing changes. With another lifetime, it is unclear which is meant.
    there = [user(text("v" * 1100, "5m"))]
    assert await used(claude, messages=there, cache_control=mark) == (0, size, 0)
    assert "ttl='1h'" in await refused(claude, messages=there, cache_control=mark | {"ttl": "1h"})


async def test_the_automatic_marker_is_not_dashscopes(claude: Server) -> None:
    response = await ask(claude, path=COMPATIBLE, cache_control={"type": "ephemeral"})
    assert response.status_code == 200
    assert "cache_control" in response.headers["x-hotprefix-warning"]


@pytest.mark.parametrize(
    "mark",
    [{"type": "eternal"}, {"type": "ephemeral", "ttl": "2h"}, {"type": "ephemeral", "ttl": 5}, "ephemeral"],
)
async def test_what_is_no_marker_is_refused(claude: Server, mark: Any) -> None:
    block = {"type": "text", "text": "x", "cache_control": mark}
    assert "messages[0].content[0].cache_control" in await refused(claude, messages=[user(block)])
    assert "tools[0].cache_control" in await refused(claude, tools=[WEATHER | {"cache_control": mark}])
    assert "'cache_control" in await refused(claude, cache_control=mark)
    response = await ask(claude, path=COMPATIBLE, messages=[user(block)])
    assert (response.status_code, "x-hotprefix-warning" in response.headers) == (200, True)


async def test_null_is_no_marker(claude: Server) -> None:
    block = {"type": "text", "text": "u" * 1100, "cache_control": None}
    assert await used(claude, messages=[user(block)], cache_control=None) == (0, 0, 0)


async def test_max_tokens_0_writes_and_says_nothing(claude: Server) -> None:
    response = await ask(claude, system=system(), messages=[Q], max_tokens=0)
    body = response.json()
    assert (body["content"], body["stop_reason"], body["stop_sequence"]) == ([], "max_tokens", None)
    assert body["usage"]["output_tokens"] == 0
    assert body["usage"]["cache_creation_input_tokens"] == SIZE
    assert claude.lines()[-1]["completion_tokens"] == 0
    assert await used(claude, system=system()) == (SIZE, 0, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"stream": True},
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        {"tools": [WEATHER], "tool_choice": {"type": "any"}},
        {"tools": [WEATHER], "tool_choice": {"type": "tool", "name": "weather"}},
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}}},
    ],
)
async def test_max_tokens_0_goes_with_no_answer(claude: Server, fields: Any) -> None:
    assert "'max_tokens'" in await refused(claude, max_tokens=0, **fields)


async def test_t32_a_stream_bills_what_a_whole_answer_bills(claude: Server) -> None:
    for fields in (
        {"system": system("s", "1h")},
        {"system": "s"},
        {"messages": [user(text("x" * 1100, "5m"))]},
    ):
        for _ in range(2):
            whole = (await ask(claude, headers={"x-api-key": "one"}, **fields)).json()["usage"]
            shown = await events(claude, headers={"x-api-key": "two"}, **fields)
            opening, closing = shown[0]["message"]["usage"], shown[-2]["usage"]
            assert opening | closing == whole


async def test_t32_four_shapes_have_the_same_classes(claude: Server) -> None:
    """Chat, native and DashScope's Anthropic-compatible route under one profile."""
    mark = {"type": "ephemeral"}
    part = {"type": "text", "text": "s" * 1100, "cache_control": mark}
    messages = [{"role": "system", "content": [part]}, {"role": "user", "content": "q"}]

    async def classes(shape: str) -> tuple[int, int, int, int]:
        headers = {"authorization": f"Bearer {shape}"}
        if shape == "chat":
            body = (
                await claude.client.post(
                    "/v1/chat/completions", json={"model": "scripted", "messages": messages}, headers=headers
                )
            ).json()["usage"]
            details = body["prompt_tokens_details"]
            read, written = details["cached_tokens"], details["cache_creation_input_tokens"]
            return body["prompt_tokens"] - read - written, read, written, body["completion_tokens"]
        if shape == "native":
            body = (await generate(claude, messages=messages, headers=headers)).json()["usage"]
            details = body["prompt_tokens_details"]
            read, written = details["cached_tokens"], details["cache_creation_input_tokens"]
            return body["input_tokens"] - read - written, read, written, body["output_tokens"]
        response = await ask(claude, path=COMPATIBLE, system=[part], messages=messages[1:], headers=headers)
        body = response.json()["usage"]
        read, written = body["cache_read_input_tokens"], body["cache_creation_input_tokens"]
        return body["input_tokens"], read, written, body["output_tokens"]

    for expected in ((0, SIZE), (SIZE, 0)):
        found = {shape: await classes(shape) for shape in ("chat", "native", "anthropic")}
        assert len(set(found.values())) == 1, found
        assert found["chat"][1:3] == expected


async def test_implicit_hits_are_told_on_dashscopes_route(claude: Server) -> None:
    response = await ask(claude, path=COMPATIBLE, messages=[user(text("x" * 1100))])
    usage = response.json()["usage"]
    assert (usage["cache_read_input_tokens"] > 0, usage["cache_creation_input_tokens"]) == (True, 0)


async def test_another_key_reads_nothing(claude: Server) -> None:
    for key in ("one", "two"):
        assert await used(claude, system=system(), headers={"x-api-key": key}) == (0, SIZE, 0)
    assert await used(claude, system=system(), headers={"x-api-key": "one"}) == (SIZE, 0, 0)


def _with_template(engine: ScriptedEngine, template: PlainTemplate) -> Any:
    from dataclasses import replace

    return replace(engine.model, template=template)
