"""OpenTelemetry: spans and events of the GenAI conventions, as the OTLP file exporter writes them.

Attribute names by open-telemetry/semantic-conventions-genai (`docs/gen-ai/client-inference.md`), those of
earlier versions and of others that were seen beside them. Both cache counts are parts of `input_tokens`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import orjson
from xxhash import xxh3_64_intdigest

from hotprefix.doctor.place import Place
from hotprefix.doctor.report.call import Call, Source
from hotprefix.doctor.report.labels import moment, number
from hotprefix.doctor.report.prints import shortened
from hotprefix.doctor.report.sources.answers import set_usage
from hotprefix.doctor.report.trouble import Trouble, Troubles
from hotprefix.doctor.report.usage import UNNAMED_TTL, BrokenUsage, Json, Usage, count

_PROMPT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens")
_READ = (
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached", "gen_ai.usage.cached_tokens",
)  # fmt: skip
_WRITTEN = (
    "gen_ai.usage.cache_write.input_tokens", "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens", "gen_ai.usage.input_tokens.cache_write",
)  # fmt: skip
_FIRST = (
    "gen_ai.response.time_to_first_chunk", "gen_ai.server.time_to_first_token",
    "gen_ai.latency.time_to_first_token",
)  # fmt: skip
_INT64_DIGITS = 20
_OF_LOGS = ("timeUnixNano", "observedTimeUnixNano")
_INFERENCE = ("chat", "generate_content", "text_completion")
_TEXTS = {
    "request_id": ("gen_ai.response.id",),
    "provider": ("gen_ai.provider.name", "gen_ai.system"),
    "model": ("gen_ai.request.model", "gen_ai.response.model"),
    "session": ("gen_ai.conversation.id", "session.id"),
    "prompt_name": ("gen_ai.prompt.name",),
    "prompt_version": ("gen_ai.prompt.version",),
    "tenant": ("tenant.id", "tenant"),
    "scene": ("hotprefix.scene", "scene", "service.name"),
}


def is_otel(document: Json) -> bool:
    """Whether a document is an OTLP export, or one span as the Python SDK's console exporter prints it."""
    if any(name in document for name in ("resourceSpans", "resourceLogs", "resourceMetrics")):
        return True
    return isinstance(document.get("context"), dict) and isinstance(document.get("attributes"), dict)


class OtelExport:
    """Reads one file after the other."""

    def __init__(self, troubles: Troubles) -> None:
        self._troubles = troubles

    def calls(self, file: str, documents: Iterable[tuple[int, Any]]) -> Iterator[Call]:
        """A call for each span or event that tells the tokens of one inference."""
        for line, document in documents:
            place = Place(file, line)
            if not isinstance(document, dict) or not is_otel(document):
                self._troubles.add(Trouble.NO_CALL, place)
                continue
            for attributes, record in _records(document):
                call = self._call(attributes, record, place)
                if call is not None:
                    yield call

    def _call(self, attributes: Json, record: Json, place: Place) -> Call | None:
        if not any(name in attributes for name in (*_PROMPT, *_OUTPUT)):
            return None
        operation = attributes.get("gen_ai.operation.name")
        if operation is not None and operation not in _INFERENCE:
            # Agents and workflows sum up what their inferences used: counting both would count twice.
            self._troubles.add(Trouble.OTHER_OPERATION, place)
            return None
        call = Call(Source.OPENTELEMETRY)
        for name, keys in _TEXTS.items():
            setattr(call, name, _text(attributes, keys))
        _set_times(call, attributes, record)
        _set_prints(call, attributes, record)
        reasons = attributes.get("gen_ai.response.finish_reasons")
        call.finish = str(reasons[0]) if isinstance(reasons, list) and reasons else None
        try:
            set_usage(call, _usage(attributes, place, self._troubles))
        except BrokenUsage:
            self._troubles.add(Trouble.BROKEN_USAGE, place)
        return call


def _records(document: Json) -> Iterator[tuple[Json, Json]]:
    """Attributes, those of the resource included, of every span or event."""
    if isinstance(document.get("attributes"), dict):
        resource = document.get("resource")
        own = resource.get("attributes", {}) if isinstance(resource, dict) else {}
        yield {**own, **document["attributes"]}, _console(document)
    for outer, inner, leaf in (
        ("resourceSpans", "scopeSpans", "spans"),
        ("resourceLogs", "scopeLogs", "logRecords"),
    ):
        for resource in _list(document, outer):
            shared = _attributes(resource.get("resource"))
            for scope in _list(resource, inner):
                for record in _list(scope, leaf):
                    yield {**shared, **_attributes(record)}, record


def _console(span: Json) -> Json:
    context = span.get("context")
    ids = context if isinstance(context, dict) else {}
    return {
        "traceId": ids.get("trace_id"),
        "spanId": ids.get("span_id"),
        "parentSpanId": span.get("parent_id"),
        "start": span.get("start_time"),
        "end": span.get("end_time"),
    }


def _attributes(holder: Any) -> dict[str, Any]:
    pairs = holder.get("attributes") if isinstance(holder, dict) else None
    if not isinstance(pairs, list):
        return {}
    return {
        pair["key"]: _value(pair.get("value"))
        for pair in pairs
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def _value(value: Any) -> Any:
    """An AnyValue; whole numbers come as text, for they have 64 bits."""
    if not isinstance(value, dict):
        return value
    for kind, inner in value.items():
        if kind == "intValue":
            return _whole(inner)
        if kind == "arrayValue":
            return [_value(one) for one in _list(inner, "values")] if isinstance(inner, dict) else []
        return inner
    return None


def _whole(value: Any) -> Any:
    text = str(value)
    return int(text) if text.lstrip("-").isdecimal() and len(text) <= _INT64_DIGITS else value


def _usage(attributes: Json, place: Place, troubles: Troubles) -> Usage:
    prompt, read = _count(attributes, _PROMPT), _count(attributes, _READ)
    written = _count(attributes, _WRITTEN)
    if prompt is not None and (read or 0) + (written or 0) > prompt:
        # Anthropic's own input_tokens under the convention's name: cached ones are counted beside them.
        troubles.add(Trouble.BESIDE, place)
        prompt += (read or 0) + (written or 0)
    by_ttl = None if written is None else {UNNAMED_TTL: written}
    mode = "explicit" if written else "implicit" if read else None
    return Usage(prompt, read, by_ttl, _count(attributes, _OUTPUT), mode)


def _count(attributes: Json, names: Iterable[str]) -> int | None:
    return next((found for name in names if (found := count(attributes, name)) is not None), None)


def _set_times(call: Call, attributes: Json, record: Json) -> None:
    start = _nanoseconds(record, "startTimeUnixNano", "timeUnixNano", "observedTimeUnixNano")
    end = _nanoseconds(record, "endTimeUnixNano")
    start = moment(record.get("start")) if start is None else start
    end = moment(record.get("end")) if end is None else end
    call.at = start
    if start is not None and end is not None and end >= start:
        call.total = end - start
    first = next((found for name in _FIRST if (found := number(attributes.get(name))) is not None), None)
    call.first_token = first if first is not None and first >= 0 else None


def _nanoseconds(record: Json, *names: str) -> float | None:
    for name in names:
        value = number(record.get(name))
        if value:
            return value / 1e9
    return None


def _set_prints(call: Call, attributes: Json, record: Json) -> None:
    trace, span, parent = (record.get(name) for name in ("traceId", "spanId", "parentSpanId"))
    if any(name in record for name in _OF_LOGS):
        # An event stands in the context of a span, but is none.
        parent, span = span, None
    call.span_print = _print(trace, span)
    call.parent_print = _print(trace, parent)
    for name in ("gen_ai.tool.definitions", "gen_ai.system_instructions"):
        value = attributes.get(name)
        if value:
            digest = xxh3_64_intdigest(repr(value).encode("utf-8", "replace"))
            if name.endswith("definitions"):
                call.tools_print = digest
            else:
                call.system_print = digest
                call.words = shortened(_said(value))


def _said(value: Any) -> str:
    """The text of instructions: parts with `content`, as JSON text or as they are."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError:
            return str(value)
    parts = value if isinstance(value, list) else [value]
    texts = [part.get("content") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def _print(trace: Any, span: Any) -> int | None:
    return xxh3_64_intdigest(f"{trace}/{span}".encode()) if span else None


def _text(attributes: Json, names: Iterable[str]) -> str | None:
    return next((str(attributes[name]) for name in names if attributes.get(name) not in (None, "")), None)


def _list(holder: Json, name: str) -> list[Any]:
    found = holder.get(name)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
