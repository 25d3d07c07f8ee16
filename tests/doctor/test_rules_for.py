"""Whose rules recorded requests are judged by, and which API they are for."""

from __future__ import annotations

from typing import Any

import pytest

from hotprefix.doctor.dialect import Dialect, dialect_of
from hotprefix.doctor.lint.vendors import Vendors
from hotprefix.doctor.place import Place
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rules_for import rules_for
from hotprefix.profiles.loader import load_profiles

USER = {"role": "user", "content": "Where?"}


@pytest.mark.parametrize(
    ("dialect", "model", "vendor"),
    [
        (Dialect.CHAT, "azure/gpt-4o", "openai"),
        (Dialect.CHAT, "openrouter/anthropic/claude-sonnet-4-5", "anthropic"),
        (Dialect.CHAT, "gpt-oss-20b", "hotprefix"),
        (Dialect.ANTHROPIC, "qwen3-max", "dashscope"),
        (Dialect.ANTHROPIC, "my-own", "anthropic"),
        (Dialect.CHAT, "my-own", "dashscope"),
        (Dialect.CHAT, "", "dashscope"),
    ],
)
def test_the_model_decides(dialect: Dialect, model: str, vendor: str) -> None:
    book = load_profiles()
    found = rules_for(Recorded(dialect, {"model": model}, Place("x")), book)
    assert found.vendor == vendor
    linted = Vendors(book).profile(dialect, model)
    assert linted == found or linted.vendor == "hotprefix", "the linter takes unknown models for one's own"


@pytest.mark.parametrize(
    ("body", "dialect"),
    [
        ({"model": "glm-4.6", "messages": [USER], "thinking": {"type": "enabled"}}, Dialect.CHAT),
        (
            {
                "model": "x",
                "messages": [{"role": "system", "content": "a"}],
                "thinking": {"budget_tokens": 1},
            },
            Dialect.CHAT,
        ),
        ({"model": "claude-x", "messages": [USER], "thinking": {"type": "adaptive"}}, Dialect.ANTHROPIC),
        ({"model": "x", "messages": [USER], "thinking": {"budget_tokens": 1}}, Dialect.ANTHROPIC),
        ({"model": "gpt-5", "input": "Hi"}, Dialect.RESPONSES),
        ({"model": "gpt-5", "input": [USER]}, Dialect.RESPONSES),
        ({"model": "text-embedding-3-small", "input": "Hi"}, None),
        ({"model": "bge-m3", "input": ["Hi", "Ho"]}, None),
        ({"input": "Hi"}, None),
    ],
)
def test_dialects(body: dict[str, Any], dialect: Dialect | None) -> None:
    assert dialect_of(body) is dialect


def test_the_address_goes_before_the_body() -> None:
    assert dialect_of({"input": "Hi"}, "https://x/v1/responses") is Dialect.RESPONSES
    assert dialect_of({"model": "m", "input": "Hi"}, "https://x/v1/embeddings") is None
