from __future__ import annotations

from typing import Any

import pytest

from tests.api.support import Server

pytestmark = pytest.mark.anyio


async def complete(server: Server, **fields: Any) -> dict[str, Any]:
    response = await server.client.post("/v1/completions", json={"model": "scripted"} | fields)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body


def folded(chunks: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for piece in chunk["choices"]:
            whole = choices.setdefault(
                piece["index"], {"text": "", "reasons": [], "tokens": [], "offsets": []}
            )
            whole["text"] += piece["text"]
            whole["reasons"] += [piece["finish_reason"]] if piece["finish_reason"] else []
            if piece["logprobs"]:
                whole["tokens"] += piece["logprobs"]["tokens"]
                whole["offsets"] += piece["logprobs"]["text_offset"]
    return choices


@pytest.mark.parametrize(
    ("prompt", "texts"),
    [
        ("abc", ["abc"]),
        (["ab", "cd"], ["ab", "cd"]),
        ([97, 98], ["ab"]),
        ([[97], [98, 99]], ["a", "bc"]),
        (["ab", [99]], ["ab", "c"]),
    ],
)
async def test_every_form_of_prompt(server: Server, prompt: Any, texts: list[str]) -> None:
    body = await complete(server, prompt=prompt)
    assert body["object"] == "text_completion"
    assert [choice["text"] for choice in body["choices"]] == texts
    assert [choice["index"] for choice in body["choices"]] == list(range(len(texts)))
    size = sum(map(len, texts))
    assert body["usage"]["prompt_tokens"] == size
    assert body["usage"]["completion_tokens"] == size + len(texts)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"n": 2},
        {"echo": True},
        {"logprobs": 2},
        {"logprobs": 0, "n": 2},
        {"max_tokens": 2},
        {"stop": ["b"]},
    ],
    ids=str,
)
async def test_stream_says_what_the_whole_answer_says(server: Server, fields: dict[str, Any]) -> None:
    fields = {"prompt": ["abc", "dé"]} | fields
    whole = await complete(server, **fields)
    streamed = folded(await server.chunks("/v1/completions", **fields))
    assert len(streamed) == len(whole["choices"]) == 2 * fields.get("n", 1)
    for choice in whole["choices"]:
        mine = streamed[choice["index"]]
        assert mine["text"] == choice["text"]
        assert mine["reasons"] == [choice["finish_reason"]]
        assert mine["tokens"] == (choice["logprobs"] or {"tokens": []})["tokens"]
        assert mine["offsets"] == (choice["logprobs"] or {"text_offset": []})["text_offset"]


async def test_legacy_logprobs(server: Server) -> None:
    body = await complete(server, prompt="ab", logprobs=2, max_tokens=2)
    assert body["choices"][0]["logprobs"] == {
        "tokens": ["a", "b"],
        "token_logprobs": [-0.5, -0.5],
        "top_logprobs": [{"a": -0.5, "b": -1.5}, {"b": -0.5, "c": -1.5}],
        "text_offset": [0, 1],
    }


async def test_echo_of_tokens(server: Server) -> None:
    body = await complete(server, prompt=[97, 98], echo=True)
    assert body["choices"][0]["text"] == "abab"


async def test_ignore_eos_goes_on(server: Server) -> None:
    body = await complete(server, prompt="a", ignore_eos=True, max_tokens=5)
    assert body["choices"][0] == {"index": 0, "text": "aaa", "logprobs": None, "finish_reason": "length"}
    assert body["usage"]["completion_tokens"] == 5


async def test_best_of_equal_to_n(server: Server) -> None:
    assert len((await complete(server, prompt="a", n=2, best_of=2))["choices"]) == 2


async def test_usage_in_a_stream_counts_all_prompts(server: Server) -> None:
    chunks = await server.chunks(
        "/v1/completions", prompt=["ab", "c"], stream_options={"include_usage": True}
    )
    assert chunks[-1]["usage"]["prompt_tokens"] == 3


async def test_each_prompt_has_an_engine_id_of_its_own(server: Server) -> None:
    headers = {"x-request-id": "mine"}
    body = {"model": "scripted", "prompt": ["a", "b"]}
    await server.client.post("/v1/completions", json=body, headers=headers)
    assert [request.request_id for request in server.engine.seen] == ["mine", "mine.1"]


@pytest.mark.parametrize("as_ids", [False, True])
async def test_a_changed_raw_prompt_is_told_with_its_place(server: Server, as_ids: bool) -> None:
    rules = " ".join(f"Rule {number}: count box {number * 7} twice." for number in range(40))
    texts = [f"Report of 2031-04-05T10:00:0{second}. {rules} Report:" for second in (1, 2)]
    prompts = [list(text.encode()) for text in texts] if as_ids else texts
    answers = [
        await server.client.post("/v1/completions", json={"model": "scripted", "prompt": prompt})
        for prompt in prompts
    ]
    headers = answers[1].headers
    at = texts[0].index(":01.") + 2
    assert headers["x-hotprefix-miss-reason"] == "HISTORY_EDITED"
    assert headers["x-hotprefix-miss-detail"] == "VOLATILE_TIME"
    assert headers["x-hotprefix-divergence"] == f"prompt;0;{at}"
    assert headers["x-hotprefix-evidence"] == "proved by bytes"
    assert int(headers["x-hotprefix-lost-tokens"]) > 100


async def test_a_raw_prompt_that_goes_on_from_the_answer_lost_nothing(server: Server) -> None:
    server.engine.share = 1.0
    first = await complete(server, prompt="Once upon a time there was a king of long and patient memory.")
    text = "Once upon a time there was a king of long and patient memory." + first["choices"][0]["text"]
    answer = await server.client.post(
        "/v1/completions", json={"model": "scripted", "prompt": text + " And then"}
    )
    assert answer.headers["x-hotprefix-miss-reason"] == "NONE"
