"""Other vendors' packages against a real server: what they are told was cached is what was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import dashscope
import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from tests.e2e.server import Server, serving

pytestmark = pytest.mark.model

MARK: Any = {"type": "ephemeral"}


def rules(subject: str) -> str:
    """More than 1,024 tokens."""
    return " ".join(f"Rule {n} about {subject}: be kind to {subject} number {n}." for n in range(90))


def asked(subject: str, question: str) -> dict[str, Any]:
    system = [{"type": "text", "text": rules(subject), "cache_control": MARK}]
    messages = [{"role": "user", "content": question}]
    return {"model": DEFAULT_MODEL, "max_tokens": 6, "system": system, "messages": messages}


def tool(number: int) -> dict[str, Any]:
    words = f"Tells the weather of place {number} and what to wear there, in many words. " * 4
    schema = {"type": "object", "properties": {"day": {"type": "string"}}}
    return {"name": f"weather_{number}", "description": words, "input_schema": schema}


@pytest.fixture(scope="module")
def busy(default_model: ModelManifest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server of its own: entries hold blocks for minutes after their requests."""
    with serving(tmp_path_factory.mktemp("dialects")) as server:
        yield server


@pytest.fixture
def claude(busy: Server) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=busy.url, api_key="key", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("stream", [False, True])
def test_what_anthropics_package_writes_it_reads(claude: anthropic.Anthropic, stream: bool) -> None:
    def usage(question: str) -> Any:
        fields = asked(f"lamps {stream}", question)
        if not stream:
            return claude.messages.create(**fields).usage
        with claude.messages.stream(**fields) as events:
            return events.get_final_message().usage

    first, second = usage("What is a lamp made of?"), usage("Who made it?")
    assert first.cache_creation_input_tokens > 1024
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens == 0


def test_an_entry_is_readable_while_its_answer_is_drawn(claude: anthropic.Anthropic) -> None:
    fields = asked("doors", "Tell a long story.") | {"max_tokens": 400}
    with claude.messages.create(**fields, stream=True) as running:
        start: Any = next(iter(running))
        created = start.message.usage.cache_creation_input_tokens
        assert created > 1024
        read = claude.messages.create(**asked("doors", "Who opens them?")).usage
        assert (read.cache_read_input_tokens, read.cache_creation_input_tokens) == (created, 0)


def test_a_marker_on_the_last_tool_covers_them_all(claude: anthropic.Anthropic) -> None:
    tools: Any = [*map(tool, range(12)), tool(12) | {"cache_control": MARK}]
    fields = asked("tools", "Hi") | {"system": "Be kind.", "tools": tools}
    first = claude.messages.create(**fields).usage
    second = claude.messages.create(
        **(fields | {"messages": [{"role": "user", "content": "Hello there"}]})
    ).usage
    assert first.cache_creation_input_tokens is not None
    assert first.cache_creation_input_tokens > 1024
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    # All but the question and the opening of the answer.
    assert second.input_tokens < 16


def test_warming_makes_the_first_question_a_hit(claude: anthropic.Anthropic) -> None:
    warm = claude.messages.create(**(asked("walls", "x") | {"max_tokens": 0}))
    assert (warm.content, warm.usage.output_tokens) == ([], 0)
    read = claude.messages.create(**asked("walls", "How high?")).usage
    assert read.cache_read_input_tokens == warm.usage.cache_creation_input_tokens


def test_an_answer_that_was_begun_goes_on_as_it_would_have(claude: anthropic.Anthropic) -> None:
    asked: Any = {
        "model": DEFAULT_MODEL,
        "max_tokens": 24,
        "extra_body": {"temperature": 0},
        "messages": [{"role": "user", "content": "Count from one to twenty in words."}],
    }
    whole = claude.messages.create(**asked).content[0].to_dict()["text"]
    begun = whole[: whole.rindex(" ", 0, len(whole) // 2)]
    history = [*asked["messages"], {"role": "assistant", "content": begun}]
    rest = claude.messages.create(**(asked | {"messages": history})).content[0].to_dict()["text"]
    assert (begun + rest).startswith(whole)


def test_dashscopes_package_sees_implicit_hits_and_streams(busy: Server) -> None:
    def usage(question: str) -> Any:
        messages = [{"role": "system", "content": rules("roofs")}, {"role": "user", "content": question}]
        chunks = client.chat.completions.create(
            model=DEFAULT_MODEL, messages=messages, max_tokens=6, stream=True
        )
        return list(chunks)[-1].usage

    with dashscope.Client(api_key="key", base_url=f"{busy.url}/api/v1", protocol="native") as client:
        first, second = usage("What are they made of?"), usage("Who made them?")
    assert first.prompt_tokens_details["cached_tokens"] < 32
    assert second.prompt_tokens_details["cached_tokens"] > 1024
    assert set(second.prompt_tokens_details) == {"cached_tokens"}
