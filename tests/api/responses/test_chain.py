"""Going on from stored responses: what the model reads then, and who may."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from hotprefix.base.clock import ManualClock
from tests.api.responses.support import CALL, DASHSCOPE, OPENAI, WEATHER, post, respond, stream, text_of
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process

pytestmark = pytest.mark.anyio
PATHS = pytest.mark.parametrize("path", [OPENAI, DASHSCOPE])
WEEK = 7 * 86_400.0
NOT_FOUND = (
    '{"error":{"message":"Previous response with id \'ID\' not found.","type":"invalid_request_error",'
    '"param":"previous_response_id","code":"previous_response_not_found"}}'
)
NOT_FOUND_FLAT = '{"code":"InvalidParameter","message":"Not found previous_response_id: ID","request_id":"R"}'


def answered(engine: ScriptedEngine, number: int) -> list[int]:
    """A prompt with what the engine drew for it, the end token left out."""
    ids = engine.seen[number].prompt_ids
    text = engine.model.tokenizer.decode(ids)
    return [*ids, *engine.reply(text).encode()]


def require_prefixes(engine: ScriptedEngine) -> None:
    """Every prompt begins with the tokens of the turn before it, its answer included."""
    for number in range(1, len(engine.seen)):
        before = answered(engine, number - 1)
        assert list(engine.seen[number].prompt_ids[: len(before)]) == before


@PATHS
async def test_each_turn_begins_with_the_tokens_of_the_last(server: Server, path: str) -> None:
    server.engine.reply = lambda prompt: f"  answer {prompt.count('user:')} with odd  space \n"
    last: dict[str, Any] = {}
    for turn in range(4):
        more = {"previous_response_id": last["id"]} if last else {}
        last = (await stream(server, path, input=f"question {turn}", instructions="Be kind.", **more))[-1][
            "response"
        ]
    require_prefixes(server.engine)
    prompt = server.engine.model.tokenizer.decode(server.engine.seen[-1].prompt_ids)
    assert [f"question {turn}" in prompt for turn in range(4)] == [True] * 4
    assert prompt.startswith("system: Be kind.\nuser: question 0\nassistant:   answer 1 with odd  space \n\n")


async def test_instructions_are_not_inherited(server: Server) -> None:
    first = await respond(server, instructions="Be kind.")
    await respond(server, previous_response_id=first["id"])
    assert b"Be kind." not in bytes(server.engine.seen[-1].prompt_ids)


@PATHS
async def test_a_tool_loop_keeps_the_models_own_words(server: Server, path: str) -> None:
    """Calls are given back as drawn, odd spaces included, not written anew."""

    def reply(prompt: str) -> str:
        return "It is sunny." if prompt.count("tool:") == 2 else f"Wait. {CALL}"

    server.engine.reply = reply
    first = await respond(server, path, tools=[WEATHER], input="Paris?")
    message, call = first["output"]
    assert (message["content"][0]["text"], call["name"], call["arguments"]) == (
        "Wait.",
        "weather",
        '{"city": "Paris"}',
    )
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "no data"}
    second = await respond(server, path, tools=[WEATHER], input=[result], previous_response_id=first["id"])
    call = second["output"][1]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
    third = await respond(server, path, tools=[WEATHER], input=[result], previous_response_id=second["id"])
    assert text_of(third) == "It is sunny."
    require_prefixes(server.engine)
    listed = (await server.client.get(f"{path}/{third['id']}/input_items")).json()
    assert [(item["type"], item["output"]) for item in listed["data"]] == [("function_call_output", "sunny")]


async def test_calls_that_were_left_out_are_not_shown_to_the_model_later(server: Server) -> None:
    server.engine.reply = lambda _: CALL + CALL
    first = await respond(server, tools=[WEATHER], parallel_tool_calls=False)
    call = first["output"][0]
    result = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
    await respond(server, tools=[WEATHER], input=[result], previous_response_id=first["id"])
    assert bytes(server.engine.seen[-1].prompt_ids).count(b"<tool_call>") == 0


async def test_the_whole_history_can_be_sent_instead(server: Server) -> None:
    server.engine.reply = lambda _: "Fine."
    first = await respond(server)
    history = [{"role": "user", "content": "Hello"}, *first["output"], {"role": "user", "content": "And?"}]
    await respond(server, input=history, store=False)
    await respond(server, input="And?", previous_response_id=first["id"])
    assert server.engine.seen[1].prompt_ids == server.engine.seen[2].prompt_ids


@PATHS
async def test_a_chain_survives_a_restart(tmp_path: Path, path: str) -> None:
    async with in_process(ScriptedEngine(), state=tmp_path) as server:
        first = await respond(server, path, input="my name is Ada", key="ada")
    async with in_process(ScriptedEngine(), state=tmp_path) as server:
        await respond(server, path, input="who am I?", previous_response_id=first["id"], key="ada")
        assert b"my name is Ada" in bytes(server.engine.seen[0].prompt_ids)
        again = await server.client.get(f"{path}/{first['id']}", headers={"authorization": "Bearer ada"})
        assert again.json()["output"] == first["output"]


@PATHS
async def test_strangers_and_random_ids_get_the_same_answer(server: Server, path: str) -> None:
    first = await respond(server, path, key="owner")
    for name in (first["id"], "resp_" + "0" * 32):
        response = await post(server, path, previous_response_id=name, key="stranger")
        told = response.text.replace(name, "ID").replace(response.headers["x-request-id"], "R")
        assert told == (NOT_FOUND if path == OPENAI else NOT_FOUND_FLAT)
        assert response.status_code == 400
        for method, tail in (("GET", ""), ("DELETE", ""), ("GET", "/input_items")):
            response = await server.client.request(
                method, f"{path}/{name}{tail}", headers={"authorization": "Bearer stranger"}
            )
            told = response.text.replace(name, "ID").replace(response.headers["x-request-id"], "R")
            assert response.status_code == 404
            assert "Response with id 'ID' not found." in told
    assert len(server.engine.seen) == 1


async def test_an_expired_chain_is_told_to_its_owner_with_its_depth(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000.0)
    async with in_process(ScriptedEngine(), clock=clock) as server:
        first = await respond(server, key="owner")
        second = await respond(server, previous_response_id=first["id"], key="owner")
        assert second["expires_at"] == int(clock.wall() + WEEK)
        clock.advance(WEEK)
        response = await post(server, previous_response_id=second["id"], key="owner")
        error = response.json()["error"]
        assert (response.status_code, error["code"]) == (400, "previous_response_expired")
        assert "the first 2 turns of its chain" in error["message"]
        response = await post(server, DASHSCOPE, previous_response_id=second["id"], key="owner")
        assert response.json()["code"] == "InvalidParameter"
        assert response.json()["message"].startswith(
            f"Not found previous_response_id: {second['id']} (expired"
        )
        owner = {"authorization": "Bearer owner"}
        gone = await server.client.get(f"{OPENAI}/{second['id']}", headers=owner)
        assert (gone.status_code, gone.json()["error"]["code"]) == (404, "response_expired")
        stranger = await post(server, previous_response_id=second["id"], key="stranger")
        assert stranger.json()["error"]["code"] == "previous_response_not_found"


async def test_use_postpones_expiry(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000.0)
    async with in_process(ScriptedEngine(), clock=clock) as server:
        last = await respond(server)
        first = last
        for _ in range(3):
            clock.advance(WEEK - 1)
            last = await respond(server, previous_response_id=last["id"])
        kept = (await server.client.get(f"{OPENAI}/{first['id']}")).json()
        assert kept["expires_at"] == int(clock.wall() + WEEK)
        assert kept | {"expires_at": 0} == first | {"expires_at": 0}


async def test_what_is_not_stored_can_not_be_gone_on_from(server: Server) -> None:
    document = await respond(server, store=False)
    assert (document["store"], document["expires_at"]) == (False, None)
    response = await post(server, previous_response_id=document["id"])
    assert response.json()["error"]["code"] == "previous_response_not_found"


@PATHS
async def test_deleted_ones_are_gone(server: Server, path: str) -> None:
    first = await respond(server, path)
    second = await respond(server, path, previous_response_id=first["id"])
    deleted = await server.client.delete(f"{path}/{first['id']}")
    assert deleted.json() == {"id": first["id"], "object": "response", "deleted": True}
    assert (await server.client.delete(f"{path}/{first['id']}")).status_code == 404
    assert (await post(server, path, previous_response_id=first["id"])).status_code == 400
    response = await post(server, path, previous_response_id=second["id"])
    assert response.status_code == 400
    if path == OPENAI:
        assert f"needs '{first['id']}' before it, which was deleted" in response.json()["error"]["message"]


async def test_input_items_come_in_pages(server: Server) -> None:
    items = [{"role": "user", "content": f"m{number}"} for number in range(5)]
    document = await respond(server, input=items)
    url = f"{OPENAI}/{document['id']}/input_items"
    newest = (await server.client.get(url)).json()
    texts = [item["content"][0]["text"] for item in newest["data"]]
    assert texts == ["m4", "m3", "m2", "m1", "m0"]
    assert (newest["object"], newest["has_more"]) == ("list", False)
    page = (await server.client.get(url, params={"order": "asc", "limit": 2})).json()
    assert (page["has_more"], page["last_id"]) == (True, page["data"][-1]["id"])
    rest = (await server.client.get(url, params={"order": "asc", "after": page["last_id"]})).json()
    assert [item["content"][0]["text"] for item in rest["data"]] == ["m2", "m3", "m4"]
    for wrong in ({"limit": "0"}, {"limit": "101"}, {"limit": "x"}, {"order": "up"}, {"after": "nobody"}):
        assert (await server.client.get(url, params=wrong)).status_code == 400
    assert (
        await server.client.get(f"{OPENAI}/{document['id']}", params={"stream": "true"})
    ).status_code == 400


@pytest.mark.parametrize("path", [OPENAI, DASHSCOPE])
async def test_a_disk_that_fails_is_told_before_the_answer_is_called_complete(
    server: Server, path: str
) -> None:
    server.sessions._store._db.close()
    response = await post(server, path)
    assert response.status_code == 503
    assert "store: false" in response.text
    assert (await stream(server, path))[-1]["type"] == "response.failed"
    assert (await post(server, path, store=False)).status_code == 200


async def test_the_file_is_not_written_for_what_is_not_stored(tmp_path: Path) -> None:
    async with in_process(ScriptedEngine(), state=tmp_path) as server:
        await respond(server, store=False)
    with sqlite3.connect(tmp_path / "sessions.sqlite3") as db:
        assert db.execute("SELECT COUNT(*) FROM response").fetchone() == (0,)
    db.close()
