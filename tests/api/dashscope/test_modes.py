"""The caches as the native protocol reports them. Names give the case of the list of pains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from hotprefix.base.clock import ManualClock
from tests.api.dashscope.support import EPHEMERAL, MULTIMODAL, events, generate, marked
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process

pytestmark = pytest.mark.anyio

HEAD = len("system: ")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


@pytest.fixture
async def dashscope(anyio_backend: str, clock: ManualClock) -> AsyncIterator[Server]:
    engine = ScriptedEngine(context_length=16384)
    async with in_process(engine, profile="dashscope-2026-03", clock=clock) as server:
        yield server


def asked(system: str, question: str = "q") -> list[dict[str, Any]]:
    """A marked system message and a question."""
    return [{"role": "system", "content": marked(system)}, {"role": "user", "content": question}]


async def used(server: Server, messages: list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """`prompt_tokens_details` of an answer."""
    response = await generate(server, messages=messages, **fields)
    assert response.status_code == 200, response.text
    details: dict[str, Any] = response.json()["usage"]["prompt_tokens_details"]
    return details


def created(count: int, cached: int = 0) -> dict[str, Any]:
    return {
        "cached_tokens": cached,
        "cache_creation_input_tokens": count,
        "cache_creation": {"ephemeral_5m_input_tokens": count},
        "cache_type": "ephemeral",
    }


async def test_create_n_then_hit_exactly_n(dashscope: Server) -> None:
    size = 1100 + HEAD
    assert await used(dashscope, asked("s" * 1100)) == created(size)
    assert await used(dashscope, asked("s" * 1100, "another question")) == created(0, cached=size)


async def test_t30_increments_are_billed(dashscope: Server) -> None:
    await used(dashscope, asked("s" * 1192))
    longer = [
        {"role": "system", "content": [*marked("s" * 1192), *marked("t" * 300)]},
        {"role": "user", "content": "q"},
    ]
    assert await used(dashscope, longer) == created(300, cached=1200)


async def test_an_implicit_hit_has_no_creation_fields(dashscope: Server) -> None:
    messages = [{"role": "user", "content": "x" * 1000}]
    assert set(await used(dashscope, messages)) == {"cached_tokens"}
    shorter = [{"role": "user", "content": "x" * 100}]
    assert await used(dashscope, shorter) == {"cached_tokens": 0}


@pytest.mark.parametrize(("tokens", "written"), [(1023, 0), (1024, 1024), (1025, 1025)])
async def test_t16_the_minimum(dashscope: Server, tokens: int, written: int) -> None:
    for _ in range(2):
        details = await used(dashscope, asked("s" * (tokens - HEAD)))
    assert details == created(0, cached=written)


async def test_t17_of_five_markers_the_last_four_count(dashscope: Server) -> None:
    messages = [{"role": "user", "content": marked("u" * 1100)} for _ in range(5)]
    response = await generate(dashscope, messages=messages)
    assert response.status_code == 200
    assert "input.messages[0].content[0].cache_control" in response.headers["x-hotprefix-warning"]
    # The first one wrote nothing.
    assert await used(dashscope, messages[:1]) == created(1100 + len("user: "))


@pytest.mark.parametrize(("between", "hits"), [(19, True), (20, False)])
async def test_t18_look_back(dashscope: Server, between: int, hits: bool) -> None:
    first = [{"role": "system", "content": marked("s" * 1100)}]
    await used(dashscope, [*first, {"role": "user", "content": "q"}])
    others = [{"role": "user", "content": "m"} for _ in range(between)]
    details = await used(dashscope, [*_unmarked(first), *others, {"role": "user", "content": marked("last")}])
    assert (details["cached_tokens"] == 1100 + HEAD) == hits


async def test_t24_markers_and_session_do_not_mix(dashscope: Server) -> None:
    headers = {"x-dashscope-session-cache": "enable"}
    # The session cache belongs to Responses: here the marker counts.
    details = await used(dashscope, asked("s" * 1100), headers=headers)
    assert details == created(1100 + HEAD)


async def test_t26_five_minutes_reset_by_every_hit(dashscope: Server, clock: ManualClock) -> None:
    size = 1100 + HEAD
    messages = asked("s" * 1100)
    assert await used(dashscope, messages) == created(size)
    for _ in range(3):
        clock.advance(299)
        assert await used(dashscope, messages) == created(0, cached=size)
    clock.advance(301)
    assert await used(dashscope, messages) == created(size)


async def test_t26_every_prefix_has_its_own_clock(dashscope: Server, clock: ManualClock) -> None:
    one, two = asked("1" * 1100), asked("2" * 1100)
    await used(dashscope, one)
    clock.advance(200)
    await used(dashscope, two)
    clock.advance(101)
    assert await used(dashscope, two) == created(0, cached=1100 + HEAD)
    assert await used(dashscope, one) == created(1100 + HEAD)


async def test_t27_of_eight_at_once_one_creates(dashscope: Server) -> None:
    size = 1100 + HEAD
    details = await asyncio.gather(*(used(dashscope, asked("s" * 1100)) for _ in range(8)))
    assert sorted(detail["cache_creation_input_tokens"] for detail in details) == [0] * 7 + [size]
    assert sorted(detail["cached_tokens"] for detail in details) == [0] + [size] * 7


async def test_another_tenant_reads_nothing(dashscope: Server) -> None:
    mine, other = {"authorization": "Bearer mine"}, {"authorization": "Bearer other"}
    messages = asked("s" * 1100)
    assert await used(dashscope, messages, headers=mine) == created(1100 + HEAD)
    assert await used(dashscope, messages, headers=other) == created(1100 + HEAD)
    assert await used(dashscope, messages, headers=mine) == created(0, cached=1100 + HEAD)


async def test_markers_in_every_role_and_on_both_routes(dashscope: Server) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": marked("s" * 1100)},
        {"role": "user", "content": marked("u" * 100)},
        {"role": "assistant", "content": marked("a" * 100), "tool_calls": [call]},
        {"role": "tool", "content": marked("t" * 100), "tool_call_id": "c"},
    ]
    first = await used(dashscope, messages)
    assert first["cached_tokens"] == 0
    for count in range(1, 5):
        details = await used(
            dashscope, [*messages[:count], {"role": "user", "content": "q"}], path=MULTIMODAL
        )
        assert details["cache_creation_input_tokens"] == 0
        assert details["cached_tokens"] >= 1100 + 100 * (count - 1)


async def test_what_is_no_marker_is_told(dashscope: Server) -> None:
    tool = {"type": "function", "function": {"name": "f"}, "cache_control": EPHEMERAL}
    messages = [{"role": "user", "content": [{"text": "x", "cache_control": {"type": "eternal"}}]}]
    response = await generate(dashscope, messages=messages, tools=[tool])
    warning = response.headers["x-hotprefix-warning"]
    assert "input.messages[0].content[0].cache_control" in warning
    assert "parameters.tools[0].cache_control" in warning
    assert response.headers["x-hotprefix-cache-mode"] == "implicit"


@pytest.mark.parametrize("incremental", [True, False])
async def test_t32_a_stream_bills_what_a_whole_answer_bills(dashscope: Server, incremental: bool) -> None:
    for system in ("a" * 1100, "b" * 100):
        sizes = []
        for headers in ({"authorization": "one"}, {"authorization": "two"}):
            for _ in range(2):
                whole = headers["authorization"] == "one"
                if whole:
                    usage = (await generate(dashscope, messages=asked(system), headers=headers)).json()[
                        "usage"
                    ]
                else:
                    fields = {"incremental_output": incremental, "headers": headers}
                    shown = await events(dashscope, messages=asked(system), **fields)
                    usage = shown[-1]["usage"]
                    opening = {
                        name: shown[0]["usage"][name] for name in ("input_tokens", "prompt_tokens_details")
                    }
                    assert opening == {name: usage[name] for name in opening}
                sizes.append(usage)
        assert sizes[:2] == sizes[2:]


def _unmarked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message | {"content": [{"text": message["content"][0]["text"]}]} for message in messages]
