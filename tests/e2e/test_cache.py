"""What is reused, seen from outside: the usage tells it, and the answers don't change."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

import pytest

from tests.e2e.server import Server, cached, text_of

pytestmark = pytest.mark.model

Messages = list[dict[str, Any]]


def story(subject: str) -> Messages:
    """A long system prompt; different subjects share nothing but the first words."""
    rules = " ".join(
        f"Rule {number} about {subject}: be kind to {subject} number {number}." for number in range(20)
    )
    return [{"role": "system", "content": f"{subject}. {rules}"}]


def question(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def shared(first: list[int], second: list[int]) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


@pytest.mark.parametrize("key", [None, "secret"])
def test_a_shared_prefix_is_reused_to_the_token(server: Server, key: str | None) -> None:
    prefix = story(f"lamps of {key}")
    first = [*prefix, question("What is a lamp made of?")]
    second = [*prefix, question("What is a lamp good for?")]
    common = shared(server.tokens(messages=first), server.tokens(messages=second))
    assert common > 300
    assert cached(server.ask(messages=first, max_tokens=2, key=key)) < 32
    again = server.ask(messages=second, max_tokens=2, key=key)
    assert cached(again) == common
    assert again["usage"]["prompt_tokens"] == len(server.tokens(messages=second))


def test_an_exact_repeat_is_known_to_its_last_token(server: Server) -> None:
    messages = [*story("doors"), question("Who opens them?")]
    first = server.ask(messages=messages, max_tokens=12)
    again = server.ask(messages=messages, max_tokens=12)
    assert cached(again) == again["usage"]["prompt_tokens"]
    assert text_of(again) == text_of(first)


@pytest.mark.parametrize("key", [None, "secret"])
@pytest.mark.parametrize("max_tokens", [40, 7])
def test_the_next_turn_reuses_the_answer_by_its_tokens(
    server: Server, key: str | None, max_tokens: int
) -> None:
    """Odd texts, which tokenised anew give other tokens than the model had drawn."""
    messages = [*story(f"rivers {max_tokens} {key}"), question("Name some.")]
    for turn in range(3):
        answer = server.ask(messages=messages, max_tokens=max_tokens, temperature=1.3, seed=turn, key=key)
        usage = answer["usage"]
        messages += [answer["choices"][0]["message"], question(f"And {turn} more?")]
        following = server.ask(messages=messages, max_tokens=1, key=key)
        # The last token drawn was never computed.
        assert cached(following) >= usage["prompt_tokens"] + usage["completion_tokens"] - 1


def test_credentials_share_nothing(server: Server) -> None:
    messages = [*story("keys"), question("Whose are they?")]
    for key in (None, "one", "two"):
        # The first words of every conversation may be known.
        assert cached(server.ask(messages=messages, max_tokens=1, key=key)) < 32
    for key in (None, "one", "two"):
        assert cached(server.ask(messages=messages, max_tokens=1, key=key)) > 300


def test_cached_answers_equal_uncached_ones_to_the_last_bit(server: Server, plain: Server) -> None:
    """Two conversations over one system prompt, each answer asked for twice."""
    wanted: dict[str, Any] = {"max_tokens": 20, "logprobs": True, "top_logprobs": 3}
    for first in ("Short?", "And now a longer question, of several words: what is it worth?"):
        messages = [*story("ships"), question(first)]
        server.ask(messages=messages[:1], max_tokens=3)
        for turn in range(3):
            expected = plain.ask(messages=messages, **wanted)
            assert cached(expected) == 0
            for _ in range(2):
                found = server.ask(messages=messages, **wanted)
                assert cached(found) > 300
                assert found["choices"] == expected["choices"]
            messages += [found["choices"][0]["message"], question(f"What else, number {turn}?")]
