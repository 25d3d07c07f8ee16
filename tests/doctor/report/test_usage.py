"""Usage objects of every dialect: four disjoint classes, and null is not 0."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.report.usage import (
    BrokenUsage,
    Usage,
    anthropic_usage,
    chat_usage,
    dashscope_usage,
    responses_usage,
    told_as,
)

Told = tuple[int | None, int | None, int | None, int | None]


def told(usage: Usage) -> Told:
    return usage.prompt, usage.read, usage.write_total, usage.output


CHAT: list[tuple[str, dict[str, Any], Told]] = [
    ("none told", {"prompt_tokens": 10, "completion_tokens": 2}, (10, None, None, 2)),
    ("details null", {"prompt_tokens": 10, "prompt_tokens_details": None}, (10, None, None, None)),
    ("told 0", {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 0}}, (10, 0, None, None)),
    (
        "openai",
        {"prompt_tokens": 2006, "prompt_tokens_details": {"cached_tokens": 1920, "cache_write_tokens": 64}},
        (2006, 1920, 64, None),
    ),
    (
        "dashscope explicit",
        {
            "prompt_tokens": 3564,
            "prompt_tokens_details": {
                "cached_tokens": 0,
                "cache_creation_input_tokens": 3550,
                "cache_creation": {"ephemeral_5m_input_tokens": 3550},
                "cache_type": "ephemeral",
            },
        },
        (3564, 0, 3550, None),
    ),
    (
        "deepseek",
        {"prompt_tokens": 100, "prompt_cache_hit_tokens": 64, "prompt_cache_miss_tokens": 36},
        (100, 64, None, None),
    ),
    ("kimi", {"prompt_tokens": 100, "cached_tokens": 30}, (100, 30, None, None)),
    (
        "vllm",
        {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 16, "created_cache_tokens": 80}},
        (100, 16, 80, None),
    ),
]


@pytest.mark.parametrize(("usage", "expected"), [case[1:] for case in CHAT], ids=[case[0] for case in CHAT])
def test_chat(usage: dict[str, Any], expected: Told) -> None:
    assert told(chat_usage(usage)) == expected


def test_responses_of_openai_and_of_dashscope() -> None:
    openai = {"input_tokens": 90, "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 30}}
    assert told(responses_usage(openai)) == (90, 40, 30, None)
    split = {
        "input_tokens": 90,
        "input_tokens_details": {
            "cached_tokens": 40,
            "cache_write_tokens": 30,
            "cache_write_tokens_details": {"ttl_30m_tokens": 10, "ttl_12h_tokens": 20},
        },
    }
    assert responses_usage(split).written == {"30m": 10, "12h": 20}
    inner = {"cached_tokens": 1305, "cache_creation_input_tokens": 213, "cache_type": "ephemeral"}
    dashscope = {
        "input_tokens": 1524,
        "input_tokens_details": {"cached_tokens": 1305},
        "output_tokens": 90,
        "x_details": [{"x_billing_type": "response_api", "prompt_tokens_details": inner}],
    }
    assert told(responses_usage(dashscope)) == (1524, 1305, 213, 90)


def test_dashscope_tells_in_two_places() -> None:
    assert told(dashscope_usage({"input_tokens": 50, "cached_tokens": 20})) == (50, 20, None, None)
    details = {"prompt_tokens_details": {"cached_tokens": 30}}
    assert told(dashscope_usage({"input_tokens": 50, "cached_tokens": 20} | details)) == (50, 30, None, None)


def test_anthropic_counts_beside_each_other() -> None:
    usage = {
        "input_tokens": 50,
        "cache_read_input_tokens": 1800,
        "cache_creation_input_tokens": 248,
        "cache_creation": {"ephemeral_5m_input_tokens": 148, "ephemeral_1h_input_tokens": 100},
        "output_tokens": 503,
    }
    assert told(anthropic_usage(usage)) == (2098, 1800, 248, 503)
    assert anthropic_usage(usage).written == {"5m": 148, "1h": 100}
    nothing = {"input_tokens": 50, "cache_read_input_tokens": None, "cache_creation_input_tokens": None}
    assert told(anthropic_usage(nothing)) == (50, None, None, None)


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 11}},
        {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 5}},
        {"prompt_tokens": -1},
        {"prompt_tokens": 1.5},
        {"prompt_tokens": True},
        {"prompt_tokens": "many"},
    ],
)
def test_what_cant_be_true_is_refused(usage: dict[str, Any]) -> None:
    with pytest.raises(BrokenUsage):
        chat_usage(usage)


@given(read=st.integers(0, 10**6), written=st.integers(0, 10**6), fresh=st.integers(0, 10**6))
def test_every_dialect_tells_the_same_classes(read: int, written: int, fresh: int) -> None:
    prompt = read + written + fresh
    parts = {"cached_tokens": read, "cache_creation_input_tokens": written}
    beside = {"input_tokens": fresh, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    found = {
        told(chat_usage({"prompt_tokens": prompt, "prompt_tokens_details": parts})),
        told(dashscope_usage({"input_tokens": prompt, "prompt_tokens_details": parts})),
        told(anthropic_usage(beside)),
        told(
            responses_usage(
                {
                    "input_tokens": prompt,
                    "input_tokens_details": {"cached_tokens": read, "cache_write_tokens": written},
                }
            )
        ),
    }
    assert found == {(prompt, read, written, None)}


@pytest.mark.parametrize("dialect", list(Dialect))
def test_usage_told_again_reads_the_same(dialect: Dialect) -> None:
    readers = {
        Dialect.CHAT: chat_usage,
        Dialect.RESPONSES: responses_usage,
        Dialect.DASHSCOPE: dashscope_usage,
        Dialect.ANTHROPIC: anthropic_usage,
    }
    for usage in (Usage(100, 60), Usage(100, 0), Usage(100, None)):
        again = readers[dialect](told_as(dialect, usage))
        assert (again.prompt, again.read) == (usage.prompt, usage.read)
