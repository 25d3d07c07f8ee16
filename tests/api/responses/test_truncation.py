"""Talks beyond the window: a token of the scripted engine is a byte, and its context has 2,000."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.api.responses.support import DASHSCOPE, OPENAI, post, respond
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process

pytestmark = pytest.mark.anyio
CONTEXT = 2000
RULES = "Always be brief."


@pytest.fixture
async def small(anyio_backend: str) -> AsyncIterator[Server]:
    async with in_process(ScriptedEngine(lambda _: "y" * 60, context_length=CONTEXT)) as server:
        yield server


def question(number: int) -> str:
    return f"Q{number:03}" + "x" * 56


@pytest.mark.parametrize(("path", "full"), [(OPENAI, 1.0), (DASHSCOPE, 0.8)])
@pytest.mark.parametrize("chained", [True, False], ids=["chained", "resent"])
async def test_turns_go_in_one_cut_and_the_beginning_stays(
    small: Server, path: str, full: float, chained: bool
) -> None:
    talk: list[dict[str, Any]] = []
    last: dict[str, Any] | None = None
    cuts, prompts = [], []
    for number in range(60):
        talk.append({"role": "user", "content": question(number)})
        fields: dict[str, Any] = {"input": talk}
        if chained:
            fields = {"input": question(number)}
            if last is not None:
                fields["previous_response_id"] = last["id"]
        response = await post(
            small, path, truncation="auto", instructions=RULES, max_output_tokens=60, **fields
        )
        assert response.status_code == 200, response.text
        last = response.json()
        talk += last["output"]
        prompts.append(bytes(small.engine.seen[-1].prompt_ids))
        cut = last["x_truncated"] or {"turns": 0, "messages": 0, "tokens": 0}
        cuts.append(cut["turns"])
        header = ", ".join(f"{name}={count}" for name, count in cut.items()) if cut["turns"] else None
        assert response.headers.get("x-hotprefix-truncated") == header
        assert last["truncation"] == "auto"
        assert cut["messages"] == 2 * cut["turns"]
        # The rules, the oldest turn that is kept, and the newest question are all there.
        assert prompts[-1].startswith(f"system: {RULES}\nuser: {question(cut['turns'])}\n".encode())
        assert question(number).encode() in prompts[-1]
        assert len(prompts[-1]) <= CONTEXT * full
    changes = [at for at in range(1, 60) if cuts[at] != cuts[at - 1]]
    assert len(changes) >= 2
    for at in changes:
        assert len(prompts[at]) <= CONTEXT * (full - 0.2)
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(changes))
    for at in range(1, 60):
        if at not in changes:
            assert prompts[at].startswith(prompts[at - 1])


async def test_without_truncation_it_is_an_error(small: Server) -> None:
    talk = [{"role": "user", "content": "x" * 2500}, {"role": "user", "content": "y"}]
    response = await post(small, input=talk)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"
    response = await post(small, DASHSCOPE, input=talk, truncation="disabled")
    assert response.json()["code"] == "InvalidParameter"


async def test_the_compatible_route_truncates_by_default(small: Server) -> None:
    talk = [
        {"role": "user", "content": "x" * 1800},
        {"role": "assistant", "content": "y"},
        {"role": "user", "content": "z"},
    ]
    document = await respond(small, DASHSCOPE, input=talk)
    assert document["truncation"] == "auto"
    assert document["x_truncated"]["turns"] == 1
    kept = await respond(small, DASHSCOPE, input=talk, truncation="disabled")
    assert (kept["truncation"], kept["x_truncated"]) == ("disabled", None)


async def test_a_newest_turn_that_is_too_long_is_an_error(small: Server) -> None:
    response = await post(small, truncation="auto", input="x" * 2500)
    assert response.json()["error"]["code"] == "context_length_exceeded"
    response = await post(small, truncation="auto", input="x" * 1000, max_output_tokens=1500)
    assert response.json()["error"]["code"] == "context_length_exceeded"


async def test_a_newest_turn_alone_may_fill_the_window(small: Server) -> None:
    document = await respond(small, truncation="auto", input="x" * 1900, max_output_tokens=16)
    assert document["x_truncated"] is None
