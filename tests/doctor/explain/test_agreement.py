"""What is said of two requests in files is what the live server says of them."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.diagnosis.alignment import common_ids
from hotprefix.doctor.explain.trial import Judged
from hotprefix.doctor.text_model import TextModel
from tests.api.scripted_engine import ByteTokenizer, PlainTemplate, ScriptedEngine
from tests.api.support import Server, in_process
from tests.api.test_miss_reasons import CASES, TOOLS, chat, marked, reworded, turned_round, with_tools
from tests.doctor.explain.support import Body, Court, recorded

pytestmark = pytest.mark.anyio

PROFILE = "dashscope-2026-03"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_790_000_000.0)


@pytest.fixture
async def server(anyio_backend: str, clock: ManualClock) -> AsyncIterator[Server]:
    engine = ScriptedEngine(context_length=65_536)
    engine.share = 0.0
    async with in_process(engine, profile=PROFILE, clock=clock) as server:
        yield server


def court() -> Court:
    """The same tokenizer, template and rules as the server has."""
    return Court(PROFILE, TextModel("scripted", ByteTokenizer(), PlainTemplate()))


MARKED = [
    {"type": "text", "text": f"Part {n}. " * 60, "cache_control": {"type": "ephemeral"}} for n in range(5)
]

PAIRS: dict[str, tuple[Body, Body]] = {
    **{name: (first, second) for name, (first, second, _) in CASES.items()},
    "T04": (with_tools(TOOLS), with_tools([TOOLS[-1], *TOOLS[:-1]])),
    "T05": (with_tools(TOOLS), with_tools(reworded(TOOLS, 6))),
    "T06": (with_tools(TOOLS), with_tools(turned_round(TOOLS))),
    "T16": (marked("x" * 1_015), marked("x" * 1_015)),
    "T17": (
        {"messages": [{"role": "user", "content": MARKED}]},
        {"messages": [{"role": "user", "content": MARKED}]},
    ),
    "T23": (
        marked("Rule. " * 400, behind="Now 09:14. " * 9),
        marked("Rule. " * 400, behind="Now 09:15. " * 9),
    ),
    "other parameters": (
        chat("Where?", chat_template_kwargs={"mood": "calm"}),
        chat("Where?", chat_template_kwargs={"mood": "bold"}),
    ),
    "nothing in common": (chat("Where?"), chat("Who?", system="Another house, other rules. " * 60)),
    "an edited history": (chat("Where is it? " * 30, "Here."), chat("Where was it? " * 30, "Here.", "Why?")),
    "blanks only": (chat("Where  is it? " * 30, "Here.", "?"), chat("Where is it? " * 30, "Here.", "?")),
    "a role": (
        {
            "messages": [
                {"role": "user", "content": "Where? " * 40},
                {"role": "user", "content": "Who? " * 40},
            ]
        },
        {
            "messages": [
                {"role": "assistant", "content": "Where? " * 40},
                {"role": "user", "content": "Who? " * 40},
            ]
        },
    ),
}


async def ask(server: Server, body: Body) -> tuple[dict[str, str], Body]:
    """What the server told in its headers, and the request as a log has it, without its usage."""
    request = {"model": "scripted"} | body
    response = await server.client.post("/v1/chat/completions", json=request)
    assert response.status_code == 200, response.text
    told = {name.removeprefix("x-hotprefix-"): value for name, value in response.headers.items()}
    answer = {name: value for name, value in response.json().items() if name != "usage"}
    return told, {"request": request, "response": answer}


def reuse_all(server: Server, body: Body) -> None:
    """The engine has what it computed before, as one that never forgets."""
    ids = court().renderer.render(recorded({"model": "scripted"} | body)).prompt.token_ids
    common = (common_ids(packed(ids), packed(seen.prompt_ids)) for seen in server.engine.seen)
    # Half a token more, because the engine rounds down.
    server.engine.share = min(max(common, default=0) + 0.5, len(ids) - 0.5) / len(ids)


def packed(ids: Sequence[int]) -> bytes:
    return array("i", ids).tobytes()


@pytest.mark.parametrize("case", PAIRS)
async def test_reason_and_place(server: Server, case: str) -> None:
    judge = court()
    for body in PAIRS[case]:
        reuse_all(server, body)
        told, logged = await ask(server, body)
        found = judge.judge(logged)
        assert summary(found) == (
            told["miss-reason"],
            told.get("miss-detail", ""),
            told.get("divergence", ""),
            told.get("avoidable", "false"),
        )
        assert (found.report.matched, found.report.lost_tokens) == (
            int(told["matched-tokens"]),
            int(told["lost-tokens"]),
        )


def summary(judged: Judged) -> tuple[str, str, str, str]:
    report, found = judged.report, judged.report.divergence
    place = "" if found is None else f"{found.path};{found.block};{found.token}"
    avoidable = "true" if report.avoidable else "false"
    return str(report.reason), report.detail.replace("→", "%E2%86%92"), place, avoidable


async def test_lifetimes(server: Server, clock: ManualClock) -> None:
    judge, body = court(), marked("Rule. " * 400)
    for seconds in (0, 299, 301, 299):
        clock.advance(seconds)
        told, logged = await ask(server, body)
        found = judge.judge(logged | {"timestamp": clock.now()})
        assert (str(found.report.reason), found.report.detail) == (
            told["miss-reason"],
            told.get("miss-detail", ""),
        )
        assert found.report.matched == int(told["matched-tokens"])


async def test_classes_of_tokens_are_those_that_the_server_bills(server: Server) -> None:
    judge = court()
    for body in (marked("Rule. " * 400), marked("Rule. " * 400, behind="Another question.")):
        request = {"model": "scripted", "max_tokens": 1} | body
        response = await server.client.post("/v1/chat/completions", json=request)
        usage: dict[str, Any] = response.json()["usage"]
        found = judge.judge({"request": request, "response": response.json()})
        details = usage["prompt_tokens_details"]
        assert found.tokens == usage["prompt_tokens"]
        assert found.classes.read == details["cached_tokens"]
        assert found.classes.write_total == details.get("cache_creation_input_tokens", 0)
        assert found.report.reason is found.expected.reason
