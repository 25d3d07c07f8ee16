"""An answer as it was logged: whole, as a list of stream events, or as the text of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from hotprefix.doctor.report.call import Source
from hotprefix.doctor.report.labels import moment
from hotprefix.doctor.report.usage import (
    Json,
    Usage,
    anthropic_usage,
    chat_usage,
    dashscope_usage,
    responses_usage,
)

READERS: dict[Source, Callable[[Json], Usage]] = {
    Source.OPENAI_CHAT: chat_usage,
    Source.OPENAI_RESPONSES: responses_usage,
    Source.DASHSCOPE: dashscope_usage,
    Source.ANTHROPIC: anthropic_usage,
}
_CHAT = ("chat.completion", "text_completion")
_CHUNKS = ("chat.completion.chunk",)
_ANTHROPIC_EVENTS = (
    "message_start", "message_delta", "message_stop", "content_block_start", "content_block_delta",
    "content_block_stop", "ping",
)  # fmt: skip
_OTHER_OUTPUTS = frozenset({"embeddings", "results", "task_id", "task_status"})
"""Of DashScope: embeddings, reranking, and tasks that run apart."""
_FAILED = "failed"


@dataclass(slots=True)
class Answer:
    """What an answer tells. `usage` is its raw usage object, None if it has none."""

    source: Source
    usage: dict[str, Any] | None = None
    request_id: str | None = None
    model: str | None = None
    created: float | None = None
    finish: str | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_failure(self) -> bool:
        """Whether it is nothing but the news that there is no answer."""
        return self.usage is None and self.finish == _FAILED

    def classes(self) -> Usage:
        """Its tokens; BrokenUsage if they can't be true."""
        return READERS[self.source](self.usage or {})


def read_answer(value: Any) -> Answer | None:
    """An answer, however it was written down; None if there is none."""
    if isinstance(value, str):
        return read_answer(_parsed(value))
    if isinstance(value, list):
        return folded(one for one in value if isinstance(one, dict))
    if not isinstance(value, dict):
        return None
    for name in ("body", "events", "chunks"):
        inner = value.get(name)
        if inner is not None and "usage" not in value:
            return read_answer(inner)
    return folded([value])


def folded(events: Iterable[Json]) -> Answer | None:
    """One answer out of all of its events, or out of its one whole."""
    answer: Answer | None = None
    for event in events:
        source = event_source(event)
        if source is None:
            continue
        if answer is None:
            answer = Answer(source)
        fold(answer, event)
    return answer


def event_source(event: Json) -> Source | None:
    """Whose answer or stream event this is; None also for what no prompt cache has to do with."""
    if is_other_operation(event):
        return None
    kind, shape = event.get("object"), event.get("type")
    if kind in _CHAT or kind in _CHUNKS:
        return Source.OPENAI_CHAT
    if kind == "response" or (isinstance(shape, str) and shape.startswith("response.")):
        return Source.OPENAI_RESPONSES
    if shape == "message" or shape in _ANTHROPIC_EVENTS:
        return Source.ANTHROPIC
    usage = event.get("usage")
    if isinstance(event.get("output"), dict) and ("request_id" in event or isinstance(usage, dict)):
        return Source.DASHSCOPE
    return _by_usage(usage) if isinstance(usage, dict) else None


def is_other_operation(event: Json) -> bool:
    """Whether this answers something without a prompt that a cache could have: embeddings, images, lists."""
    if event.get("object") == "list" or isinstance(event.get("data"), list):
        return True
    output = event.get("output")
    return isinstance(output, dict) and not _OTHER_OUTPUTS.isdisjoint(output)


def is_answer(document: Json) -> bool:
    """Whether the document itself is a whole answer, with nothing around it."""
    if document.get("object") in (*_CHAT, "response") or document.get("type") == "message":
        return True
    return event_source(document) is Source.DASHSCOPE and isinstance(document.get("output"), dict)


def is_event(event: Json) -> bool:
    """Whether this is a piece of a stream rather than a whole answer."""
    shape = event.get("type")
    if event.get("object") in _CHUNKS or shape in _ANTHROPIC_EVENTS:
        return True
    if isinstance(shape, str) and shape.startswith("response."):
        return True
    output = event.get("output")
    return isinstance(output, dict) and "request_id" in event and _native_finish(output) == "null"


def fold(answer: Answer, event: Json) -> None:
    """Take in one event. Later counts replace earlier ones: every vendor's streams count up."""
    match answer.source:
        case Source.ANTHROPIC:
            _fold_anthropic(answer, event)
        case Source.OPENAI_RESPONSES:
            response = event.get("response") if event.get("type") != "message" else None
            _fold_whole(answer, response if isinstance(response, dict) else event)
        case _:
            _fold_whole(answer, event)


def _fold_whole(answer: Answer, event: Json) -> None:
    usage = event.get("usage")
    if isinstance(usage, dict) and usage:
        answer.usage = dict(usage)
    answer.request_id = answer.request_id or _text(event.get("id") or event.get("request_id"))
    answer.model = answer.model or _text(event.get("model"))
    if answer.created is None:
        answer.created = moment(event.get("created", event.get("created_at")))
    finish = _finish(event)
    if finish is not None and finish != "null":
        answer.finish = finish


def _fold_anthropic(answer: Answer, event: Json) -> None:
    message = event.get("message")
    if event.get("type") == "message_start" and isinstance(message, dict):
        _fold_whole(answer, message)
        return
    if event.get("type") == "message_delta":
        # Repeats the counts, but not the split by TTL, and may leave out what did not change.
        usage = event.get("usage")
        if isinstance(usage, dict):
            answer.usage = (answer.usage or {}) | {k: v for k, v in usage.items() if v is not None}
        delta = event.get("delta")
        if isinstance(delta, dict) and delta.get("stop_reason"):
            answer.finish = str(delta["stop_reason"])
        return
    if event.get("type") not in _ANTHROPIC_EVENTS:
        _fold_whole(answer, event)


def _finish(event: Json) -> str | None:
    choices = event.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return _text(choices[0].get("finish_reason"))
    output = event.get("output")
    if isinstance(output, dict):
        return _native_finish(output)
    incomplete = event.get("incomplete_details")
    if isinstance(incomplete, dict) and incomplete.get("reason"):
        return str(incomplete["reason"])
    stop = event.get("stop_reason")
    if stop is None and event.get("object") == "response":
        stop = event.get("status")
    return _text(stop)


def _native_finish(output: Json) -> str | None:
    choices = output.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return _text(choices[0].get("finish_reason"))
    return _text(output.get("finish_reason"))


def _by_usage(usage: Json) -> Source | None:
    """Bare usage objects: by the fields that only one dialect has."""
    if "prompt_tokens" in usage:
        return Source.OPENAI_CHAT
    if "input_tokens" not in usage:
        return None
    if "cache_read_input_tokens" in usage or "cache_creation_input_tokens" in usage:
        return Source.ANTHROPIC
    if "prompt_tokens_details" in usage or "cached_tokens" in usage:
        return Source.DASHSCOPE
    return Source.OPENAI_RESPONSES


def _parsed(text: str) -> Any:
    stripped = text.lstrip()
    try:
        if stripped[:1] in ("{", "["):
            return orjson.loads(stripped)
        return [orjson.loads(data) for data in sse_data(stripped.splitlines())]
    except orjson.JSONDecodeError:
        return None


def sse_data(lines: Iterable[str]) -> Iterator[str]:
    """The JSON of the data lines of a stream of server-sent events."""
    for line in lines:
        if line.startswith("data:"):
            data = line[5:].strip()
            if data[:1] == "{":
                yield data


def _text(value: Any) -> str | None:
    return str(value) if value not in (None, "") else None
