"""`x-hotprefix-keep: short`: a prompt that is kept at once, however short it is."""

from __future__ import annotations

import pytest

from hotprefix.api.wishes import KEEP_HEADER
from tests.api.support import Server

pytestmark = pytest.mark.anyio

BODY = {"model": "scripted", "messages": [{"role": "user", "content": "Hello"}]}


@pytest.mark.parametrize(("headers", "kept"), [({}, False), ({KEEP_HEADER: "short"}, True)])
async def test_the_engine_is_told(server: Server, headers: dict[str, str], kept: bool) -> None:
    response = await server.client.post("/v1/chat/completions", json=BODY, headers=headers)
    assert response.status_code == 200
    assert server.engine.seen[-1].keeps_short is kept


async def test_what_it_can_not_say(server: Server) -> None:
    response = await server.client.post("/v1/chat/completions", json=BODY, headers={KEEP_HEADER: "for ever"})
    error = response.json()["error"]
    assert (response.status_code, error["param"]) == (400, KEEP_HEADER)
    assert "it can say 'short', and no more" in error["message"]
    assert not server.engine.seen


async def test_whoever_asks_for_no_answer_wants_the_prompt_kept(server: Server) -> None:
    body = {"model": "scripted", "max_tokens": 0, "messages": BODY["messages"]}
    response = await server.client.post("/v1/messages", json=body)
    assert response.status_code == 200, response.text
    assert server.engine.seen[-1].keeps_short is True
