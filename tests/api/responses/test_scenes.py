"""Scenes in the request, in the ledger, and in the caches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hotprefix.api.settings import ApiSettings
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.store import open_store
from tests.api.responses.support import OPENAI, SESSION
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import HELLO, Server, in_process

pytestmark = pytest.mark.anyio
CHAT = "/v1/chat/completions"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "scripted", "messages": HELLO},
    OPENAI: {"model": "scripted", "input": "x" * 2000},
}
EACH = pytest.mark.parametrize("path", [CHAT, OPENAI])


async def ask(server: Server, path: str, scene: str, **headers: str) -> None:
    response = await server.client.post(path, json=BODIES[path] | {"session_id": scene}, headers=headers)
    assert response.status_code == 200, response.text


@EACH
async def test_a_scene_is_in_the_ledger(tmp_path: Path, path: str) -> None:
    store = open_store(tmp_path / "ledger.sqlite3")
    ledger = Ledger(store)
    async with in_process(ScriptedEngine(), ledger=ledger) as server:
        await ask(server, path, "support-bot@3")
        header = {"x-hotprefix-session": "other@1"}
        assert (await server.client.post(path, json=BODIES[path], headers=header)).status_code == 200
        await ask(server, path, "field@2", **header)
    ledger.flush()
    scenes = [row[0] for row in store.query("SELECT scene FROM ledger_request ORDER BY at")]
    ledger.close()
    assert scenes == ["support-bot@3", "other@1", "field@2"]


@EACH
@pytest.mark.parametrize("where", ["session_id", "x-hotprefix-session"])
async def test_a_bad_name_is_refused(server: Server, path: str, where: str) -> None:
    body, headers = dict(BODIES[path]), {}
    if where == "session_id":
        body["session_id"] = "no version"
    else:
        headers[where] = "no version"
    response = await server.client.post(path, json=body, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["param"] == where


@EACH
async def test_scenes_share_the_caches_unless_they_are_kept_apart(path: str) -> None:
    for isolate in (False, True):
        async with in_process(ScriptedEngine(), ApiSettings(isolate_scenes=isolate)) as server:
            for scene in ("a@1", "a@2", "b@1", "a@1"):
                await ask(server, path, scene)
            await server.client.post(path, json=BODIES[path])
            tenants = [request.tenant for request in server.engine.seen]
            assert tenants[0] == tenants[3]
            assert len(set(tenants)) == (4 if isolate else 1)


async def test_a_session_entry_of_a_scene_is_its_own() -> None:
    for isolate, hits in ((False, [False, True, True]), (True, [False, False, True])):
        async with in_process(ScriptedEngine(), ApiSettings(isolate_scenes=isolate)) as server:
            seen = []
            for scene in ("a@1", "b@1", "a@1"):
                body = BODIES[OPENAI] | {"session_id": scene}
                answer = (await server.client.post(OPENAI, json=body, headers=SESSION)).json()
                seen.append(answer["usage"]["input_tokens_details"]["cached_tokens"] > 0)
            assert seen == hits


async def test_a_chain_may_be_gone_on_from_in_another_scene() -> None:
    """Stored responses belong to the tenant: a scene keeps apart what is cached, not what is said."""
    async with in_process(ScriptedEngine(), ApiSettings(isolate_scenes=True)) as server:
        body = {"model": "scripted", "input": "Hello"}
        first = (await server.client.post(OPENAI, json=body | {"session_id": "a@1"})).json()
        body |= {"session_id": "b@1", "previous_response_id": first["id"]}
        assert (await server.client.post(OPENAI, json=body)).status_code == 200
