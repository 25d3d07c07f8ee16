"""The real `dashscope` package, 2.x, over HTTP: its client with all its protocols, and the older calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dashscope
import pytest
from dashscope.v2 import errors

from hotprefix.base.errors import Overloaded, Unavailable
from tests.api.dashscope.test_native import CALL, WEATHER
from tests.api.remote import Remote
from tests.api.support import HELLO

SAID = HELLO[0]["content"]
BASES = {"native": "/api/v1", "openai": "/compatible-mode/v1", "anthropic": "/apps/anthropic"}
LONG = [
    {
        "role": "system",
        "content": [{"type": "text", "text": "s" * 1100, "cache_control": {"type": "ephemeral"}}],
    },
    {"role": "user", "content": "q"},
]
SIZE = 1100 + len("system: ")


@pytest.fixture
def remote() -> Iterator[Remote]:
    with Remote(profile="dashscope-2026-03") as remote:
        yield remote


def client(remote: Remote, protocol: str = "native") -> Any:
    return dashscope.Client(
        api_key="key", base_url=remote.url + BASES[protocol], protocol=protocol, max_retries=0
    )


@pytest.mark.parametrize("protocol", BASES)
def test_t32_every_protocol_says_and_bills_the_same(remote: Remote, protocol: str) -> None:
    with client(remote, protocol) as talk:
        create = talk.chat.completions.create
        answer = create(model="scripted", messages=LONG, max_tokens=50)
        assert answer.output_text == "q"
        assert classes(answer.usage) == (0, SIZE, answer.usage.output_tokens)
        last = list(create(model="scripted", messages=LONG, max_tokens=50, stream=True))[-1]
        assert classes(last.usage) == (SIZE, 0, answer.usage.output_tokens)


def classes(usage: Any) -> tuple[int, int, int]:
    """Read, written and drawn."""
    details = getattr(usage, "prompt_tokens_details", None)
    if details is None:
        return usage.cache_read_input_tokens, usage.cache_creation_input_tokens, usage.output_tokens
    return details["cached_tokens"], details["cache_creation_input_tokens"], usage.output_tokens


@pytest.mark.parametrize("protocol", BASES)
def test_streams_and_tools(remote: Remote, protocol: str) -> None:
    with client(remote, protocol) as talk:
        create = talk.chat.completions.create
        chunks = list(create(model="scripted", messages=HELLO, stream=True, max_tokens=100))
        assert "".join(chunk.delta.content or "" for chunk in chunks if chunk.delta) == SAID
        assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
        remote.engine.reply = lambda prompt: CALL
        answer = create(model="scripted", messages=HELLO, tools=[WEATHER], max_tokens=100)
        assert answer.choices[0].finish_reason == "tool_calls"
        (call,) = answer.choices[0].message.tool_calls
        assert call.function.name == "weather"
        assert "Paris" in call.function.arguments


@pytest.mark.parametrize("protocol", BASES)
def test_errors_are_its_exceptions(remote: Remote, protocol: str) -> None:
    with client(remote, protocol) as talk:
        create = talk.chat.completions.create
        with pytest.raises(errors.NotFoundError) as missing:
            create(model="nope", messages=HELLO)
        assert missing.value.request_id
        with pytest.raises(errors.BadRequestError):
            create(model="scripted", messages=HELLO, top_p=7)
        if protocol == "native":
            remote.engine.refusal = Overloaded("full")
            with pytest.raises(errors.RateLimitError):
                create(model="scripted", messages=HELLO)
            remote.engine.refusal = Unavailable("later")
            with pytest.raises(errors.DashScopeError) as later:
                create(model="scripted", messages=HELLO)
            assert later.value.code == "ServiceUnavailable"
        remote.engine.refusal = None
        remote.engine.fail_after = 2
        with pytest.raises(errors.DashScopeError, match="request id"):
            list(create(model="scripted", messages=HELLO, stream=True))


def test_the_older_calls(remote: Remote) -> None:
    common: dict[str, Any] = {"api_key": "key", "base_address": remote.url + BASES["native"]}
    answer = dashscope.Generation.call("scripted", messages=LONG, result_format="message", **common)
    assert answer.output.choices[0].message.content == "q"
    assert answer.usage["prompt_tokens_details"]["cache_creation_input_tokens"] == SIZE
    texts = [
        response.output.text
        for response in dashscope.Generation.call("scripted", prompt=SAID, stream=True, **common)
    ]
    assert texts[-1] == SAID
    bad = dashscope.Generation.call("nope", prompt="x", **common)
    assert (bad.status_code, bad.code) == (404, "Model.NotExist")
