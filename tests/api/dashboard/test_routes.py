"""The page's data: for whom, with which words, and the same figures as everywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path

import orjson
import pytest
from starlette.routing import Route

from hotprefix.api.dashboard.routes import dashboard_routes
from hotprefix.kv.top import TopPath
from hotprefix.tenants.api_key import KeyWish, RateLimits
from tests.api.dashboard.conftest import RULES, Site, conversation, site
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import in_process

pytestmark = pytest.mark.anyio

SECRET = "The password is swordfish. "


async def two_requests(home: Site, headers: dict[str, str] | None = None) -> str:
    """The same prompt but for a clock at its head; the id of the second one."""
    for second in (1, 2):
        await home.chat(conversation("Hello", f"{SECRET}It is 10:00:0{second}. {RULES}"), headers)
    listed = (await home.ask("requests", headers))["requests"]
    newest: str = listed[0]["request_id"]
    return newest


def path_of(home: Site, tenant: str, text: str) -> TopPath:
    """A cached prefix of a tenant's."""
    owner = home.server.engine.root_for(tenant)
    ids = b"".join(byte.to_bytes(4, "little") for byte in text.encode())
    return TopPath(next(_KEYS), owner, False, len(text), 3, 300, 1, True, ids, b"")  # type: ignore[arg-type]


_KEYS: Iterator[bytes] = (number.to_bytes(32, "big") for number in count(1))


async def test_hello_says_what_the_page_needs(home: Site) -> None:
    told = await home.ask("hello")
    assert told["state"] == "open" and not told["has_key"] and told["tenant"] is None
    assert (told["model"], told["profile"], told["is_redacted"]) == ("scripted", "hotprefix", False)
    key = home.key("acme")
    assert (await home.ask("hello"))["state"] == "key"
    assert (await home.ask("hello", key))["tenant"] == "acme"
    far = await home.client.get("/dashboard/api/hello", headers={"host": "evil.example"})
    assert far.json()["state"] == "key"


async def test_figures_are_those_of_the_usage(home: Site) -> None:
    prompt = read = 0
    for question in ("One?", "Two?", "Two?"):
        body = {"model": "scripted", "messages": conversation(question), "max_tokens": 2}
        usage = (await home.client.post("/v1/chat/completions", json=body)).json()["usage"]
        prompt += usage["prompt_tokens"]
        read += usage["prompt_tokens_details"]["cached_tokens"]
    (total,) = (await home.ask("summary", last=3600))["totals"]
    assert (total["requests"], total["prompt"], total["read"]) == (3, prompt, read)
    assert total["hit_rate"] == pytest.approx(read / prompt)
    listed = (await home.ask("requests"))["requests"]
    assert sum(one["prompt"] for one in listed) == prompt
    assert sum(one["read"] for one in listed) == read


async def test_down_to_the_first_character_that_differs(home: Site) -> None:
    told = await home.ask(f"requests/{await two_requests(home)}")
    assert (told["reason"], told["detail"]) == ("SYSTEM_CHANGED", "VOLATILE_TIME")
    assert told["divergence"]["path"] == "messages[0].content"
    found = told["comparison"]["difference"]
    assert found["pieces"][:2] == [["old", "1"], ["new", "2"]]
    assert found["char"] == len(f"{SECRET}It is 10:00:0")
    assert "advice_zh" in told and told["advice_en"]


@pytest.mark.parametrize("is_server", [True, False])
async def test_hidden_words_do_not_leave_the_server(tmp_path: Path, is_server: bool) -> None:
    async with site(tmp_path, redact=is_server) as home:
        home.server.engine.paths = [path_of(home, "open:", SECRET)]
        query = {} if is_server else {"redact": "1"}
        newest = await two_requests(home)
        answers = [
            await home.ask(f"requests/{newest}", **query),
            await home.ask("prefixes", **query),
            await home.ask("requests"),
            await home.ask("summary"),
            await home.ask("scenes"),
            await home.ask("caches"),
            await home.ask("hello"),
        ]
        assert b"swordfish" not in orjson.dumps(answers)
        assert b"10:00" not in orjson.dumps(answers)
        assert answers[0]["reason"] == "SYSTEM_CHANGED"
        assert answers[1]["prefixes"][0]["tokens"] == len(SECRET)
        if not is_server:
            assert b"swordfish" in orjson.dumps(await home.ask("prefixes"))


async def test_a_tenant_sees_nothing_of_another(home: Site) -> None:
    ops, acme, other = home.key("ops", admin=True), home.key("acme"), home.key("other")
    mine, theirs = await two_requests(home, acme), await two_requests(home, other)
    for key, own, foreign in ((acme, mine, theirs), (other, theirs, mine)):
        assert len((await home.ask("requests", key))["requests"]) == 2
        assert (await home.ask("summary", key, tenant="acme"))["totals"][0]["requests"] == 2
        assert len((await home.ask("summary", key))["choices"]["tenant"]) == 1
        assert await home.status(f"requests/{own}", key) == 200
        refused = await home.client.get(f"/dashboard/api/requests/{foreign}", headers=key)
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "request_not_found")
        assert await home.status("engine", key) == 403
    assert len((await home.ask("requests", ops))["requests"]) == 4
    assert len((await home.ask("requests", ops, tenant="acme"))["requests"]) == 2
    assert len((await home.ask("summary", ops, tenant="acme"))["choices"]["tenant"]) == 2
    assert await home.status(f"requests/{mine}", ops) == 200
    assert await home.status("requests", None) == 401
    assert await home.status("requests/none", ops) == 404


async def test_prefixes_of_a_tenant_are_its_own(home: Site) -> None:
    ops, acme = home.key("ops", admin=True), home.key("acme")
    await home.chat(conversation("Hello"), acme)
    known = next(iter(home.recent.roots_of("acme")))
    mine, foreign = path_of(home, "x", "mine"), path_of(home, "somebody", "theirs")
    home.server.engine.paths = [replace(mine, owner=known), foreign]
    seen = (await home.ask("prefixes", acme))["prefixes"]
    assert [(one["head"], one["tenant"]) for one in seen] == [("mine", "acme")]
    assert [one["head"] for one in (await home.ask("prefixes", ops))["prefixes"]] == ["mine", "theirs"]
    assert (await home.ask("prefixes", ops))["prefixes"][1]["tenant"] is None
    assert [one["head"] for one in (await home.ask("prefixes", ops, tenant="acme"))["prefixes"]] == ["mine"]


async def test_the_engine_is_not_asked_again_at_once(home: Site) -> None:
    home.server.engine.paths = [path_of(home, "x", "first")]
    first = await home.ask("prefixes")
    home.server.engine.paths = []
    assert await home.ask("prefixes") == first
    assert (await home.ask("prefixes", redact="1"))["prefixes"] == []  # another question


async def test_caches_of_a_tenant_are_its_own(home: Site) -> None:
    ops, acme, other = home.key("ops", admin=True), home.key("acme"), home.key("other")
    document = {"name": "rules", "ttl": 600, "messages": conversation("x")[:1]}
    made = await home.client.post("/v1/caches", json=document, headers=acme)
    assert made.status_code == 201, made.text
    for key, names in ((ops, ["rules"]), (acme, ["rules"]), (other, [])):
        told = await home.ask("caches", key)
        assert [cache["name"] for cache in told["named"]] == names
    assert (await home.ask("caches", ops, tenant="other"))["named"] == []
    # Making it was booked, and can be looked at.
    (booked,) = (await home.ask("requests", acme))["requests"]
    assert booked["dialect"] == "/v1/caches"


async def test_explicit_entries_are_shown_with_their_time(tmp_path: Path) -> None:
    async with site(tmp_path) as home:
        marked = [{"type": "text", "text": RULES * 8, "cache_control": {"type": "ephemeral"}}]
        await home.chat([{"role": "system", "content": marked}, {"role": "user", "content": "Hello"}])
        (entry,) = (await home.ask("caches"))["entries"]
        assert 0 < entry["expires_in"] <= entry["ttl"]
        assert entry["tokens"] > 1024 and entry["tenant"] == "open:"


async def test_an_aborted_request_is_shown_too(home: Site) -> None:
    home.server.engine.fail_after = 1
    body = {"model": "scripted", "messages": conversation("Hello"), "max_tokens": 5}
    assert (await home.client.post("/v1/chat/completions", json=body)).status_code == 500
    home.ledger.flush()
    (one,) = (await home.ask("requests"))["requests"]
    assert one["finish"] == "aborted"
    assert (await home.ask(f"requests/{one['request_id']}"))["finish"] == "aborted"


async def test_questions_are_checked(home: Site) -> None:
    assert await home.status("summary", color="red") == 400
    assert await home.status("summary", last="soon") == 400
    assert await home.status("requests", before="then") == 400
    assert await home.status("nothing") == 404


async def test_nothing_can_be_changed(home: Site) -> None:
    for path in ("", "/api/summary", "/api/requests", "/api/prefixes", "/api/stream", "/static/app.js"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            response = await home.client.request(method, f"/dashboard{path}")
            assert response.status_code == 405, path


async def test_every_question_asks_who_it_is(home: Site) -> None:
    home.key("ops", admin=True)
    routes = [route for route in dashboard_routes(home.server.service) if isinstance(route, Route)]
    questions = [route.path for route in routes if "/api/" in route.path]
    assert len(questions) == 9
    for path in questions:
        wanted = 200 if path.endswith("/hello") else 401
        response = await home.client.get(path.replace("{id}", "x"))
        assert response.status_code == wanted, path


async def test_the_page_counts_toward_no_rate_limit(home: Site) -> None:
    limits = RateLimits(requests_per_minute=1)
    key = home.tenancy.keys.create(KeyWish("acme", limits=limits)).text
    headers = {"authorization": f"Bearer {key}"}
    for _ in range(5):
        assert await home.status("requests", headers) == 200
    await home.chat(conversation("Hello"), headers)


async def test_it_can_be_switched_off() -> None:
    async with in_process(ScriptedEngine()) as server:
        for path in ("/dashboard", "/dashboard/", "/dashboard/api/hello", "/dashboard/static/app.js"):
            assert (await server.client.get(path)).status_code == 404
