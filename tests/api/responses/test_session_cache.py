"""The session cache, to the token: a token of the scripted engine is a byte."""

from __future__ import annotations

from typing import Any

import pytest

from hotprefix.base.clock import ManualClock
from tests.api.responses.support import DASHSCOPE, OPENAI, SESSION, post, respond, stream
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import HELLO, Server, in_process

pytestmark = pytest.mark.anyio
RULES = "Answer like a librarian. " * 50
OPENING = len("\nassistant: ")


def cache(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["usage"]["x_details"][0]["prompt_tokens_details"]
    return found


async def ask(server: Server, text: str, last: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    if last is not None:
        more["previous_response_id"] = last["id"]
    return await respond(server, DASHSCOPE, input=text, instructions=RULES, headers=SESSION, **more)


async def test_three_turns_create_then_hit_exactly() -> None:
    async with in_process(ScriptedEngine()) as server:
        sizes, last = [0], None
        for turn in range(3):
            last = await ask(server, f"question {turn}", last)
            usage, details = last["usage"], cache(last)
            sizes.append(usage["input_tokens"] - OPENING)
            assert details == {
                "cached_tokens": sizes[turn],
                "cache_type": "ephemeral",
                "cache_creation_input_tokens": sizes[turn + 1] - sizes[turn],
                "cache_creation": {"ephemeral_5m_input_tokens": sizes[turn + 1] - sizes[turn]},
            }
            assert usage["input_tokens_details"] == {"cached_tokens": sizes[turn]}
        assert sizes[1] > 1024


async def test_streams_tell_the_same() -> None:
    async with in_process(ScriptedEngine()) as server:
        first = await ask(server, "question")
        fields: dict[str, Any] = {"input": "more", "instructions": RULES, "previous_response_id": first["id"]}
        events = await stream(server, DASHSCOPE, headers=SESSION, **fields)
        assert cache(events[-1]["response"])["cached_tokens"] == cache(first)["cache_creation_input_tokens"]


async def test_the_whole_history_hits_as_well() -> None:
    async with in_process(ScriptedEngine()) as server:
        first = await ask(server, "question", store=False)
        talk = [
            {"role": "user", "content": "question"},
            *first["output"],
            {"role": "user", "content": "more"},
        ]
        second = await respond(
            server, DASHSCOPE, input=talk, instructions=RULES, headers=SESSION, store=False
        )
        assert cache(second)["cached_tokens"] == cache(first)["cache_creation_input_tokens"]


async def test_entries_live_five_minutes_from_the_last_hit() -> None:
    clock = ManualClock(1_700_000_000.0)
    async with in_process(ScriptedEngine(), clock=clock) as server:
        last = await ask(server, "a")
        for _ in range(3):
            clock.advance(299)
            last = await ask(server, "a", last)
            assert cache(last)["cached_tokens"] > 0
        clock.advance(301)
        last = await ask(server, "a", last)
        assert cache(last)["cached_tokens"] == 0
        assert cache(last)["cache_creation_input_tokens"] > 0


async def test_below_the_minimum_nothing_is_created_until_the_talk_has_grown() -> None:
    async with in_process(ScriptedEngine()) as server:
        first = await respond(server, DASHSCOPE, input="x" * 900, headers=SESSION)
        assert cache(first)["cache_creation_input_tokens"] == 0
        second = await respond(
            server, DASHSCOPE, input="more", previous_response_id=first["id"], headers=SESSION
        )
        created = cache(second)["cache_creation_input_tokens"]
        assert created == second["usage"]["input_tokens"] - OPENING
        third = await respond(
            server, DASHSCOPE, input="more", previous_response_id=second["id"], headers=SESSION
        )
        assert cache(third)["cached_tokens"] == created


@pytest.mark.parametrize(
    ("value", "mode", "warned"),
    [("enable", "session", False), ("ENABLE", "session", False), (" Enable ", "session", False),
     ("disable", "implicit", False), ("Disable", "implicit", False),
     ("on", "implicit", True), ("", "implicit", True)],
)  # fmt: skip
async def test_values_of_the_header(value: str, mode: str, warned: bool) -> None:
    async with in_process(ScriptedEngine()) as server:
        response = await post(server, DASHSCOPE, headers={"X-DashScope-Session-Cache": value})
        assert response.headers["x-hotprefix-cache-mode"] == mode
        assert (
            "only enable and disable are known" in response.headers.get("x-hotprefix-warning", "")
        ) == warned
        assert ("cache_type" in cache(response.json())) == (mode == "session")


async def test_it_works_at_openais_path_with_openais_usage() -> None:
    async with in_process(ScriptedEngine()) as server:
        first = await respond(server, instructions=RULES, headers=SESSION)
        details = first["usage"]["input_tokens_details"]
        assert details == {"cached_tokens": 0, "cache_write_tokens": first["usage"]["input_tokens"] - OPENING}
        again = await respond(server, instructions=RULES, headers=SESSION, previous_response_id=first["id"])
        assert again["usage"]["input_tokens_details"]["cached_tokens"] == details["cache_write_tokens"]
        assert "x_details" not in again["usage"]


async def test_a_profile_without_a_session_cache_says_so() -> None:
    async with in_process(ScriptedEngine(), profile="openai-2026-09") as server:
        response = await post(server, headers=SESSION)
        assert response.headers["x-hotprefix-cache-mode"] == "implicit"
        assert "openai-2026-09 has no session cache" in response.headers["x-hotprefix-warning"]


async def test_markers_in_a_responses_body_have_no_effect_and_say_so() -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    items = [{"role": "user", "content": [{"type": "input_text", "text": "x" * 2000} | mark]} | mark]
    async with in_process(ScriptedEngine()) as server:
        for path in (OPENAI, DASHSCOPE):
            for headers, mode in (({}, "implicit"), (SESSION, "session")):
                response = await post(server, path, input=items, headers=headers, **mark)
                assert response.headers["x-hotprefix-cache-mode"] == mode
                warning = response.headers["x-hotprefix-warning"]
                for place in ("cache_control", "input[0].cache_control", "input[0].content[0].cache_control"):
                    assert f"{place} has no effect: Responses take the header" in warning


async def test_the_header_on_chat_has_no_effect_and_says_so() -> None:
    mark = {"type": "text", "text": "x" * 2000, "cache_control": {"type": "ephemeral"}}
    async with in_process(ScriptedEngine()) as server:
        for messages, mode in ((HELLO, "implicit"), ([{"role": "user", "content": [mark]}], "explicit")):
            body = {"model": "scripted", "messages": messages}
            response = await server.client.post("/v1/chat/completions", json=body, headers=SESSION)
            assert response.headers["x-hotprefix-cache-mode"] == mode
            assert "the session cache is for Responses" in response.headers["x-hotprefix-warning"]
            silent = {"x-dashscope-session-cache": "disable"}
            response = await server.client.post("/v1/chat/completions", json=body, headers=silent)
            assert "x-hotprefix-warning" not in response.headers
