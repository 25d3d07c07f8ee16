"""Logs of answers: OpenAI Chat and Responses, Anthropic, DashScope; with or without their requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Any

from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import UnreadableFile, recorded_of
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.report.answer import (
    Answer,
    event_source,
    fold,
    folded,
    is_answer,
    is_event,
    is_other_operation,
    read_answer,
)
from hotprefix.doctor.report.bodies import BodySpool
from hotprefix.doctor.report.call import Call, Source
from hotprefix.doctor.report.labels import headers_of, label, moment, read_verdict
from hotprefix.doctor.report.prints import print_body
from hotprefix.doctor.report.trouble import Trouble, Troubles
from hotprefix.doctor.report.usage import BrokenUsage, Json, Usage

_ANSWERS = ("response", "response_body", "output_body", "completion", "events", "chunks", "answer")
_REQUESTS = frozenset({"request", "body", "request_body", "input_body", "kwargs", "messages", "input"})
_OPEN_STREAMS = 65_536


class AnswerLog:
    """Reads one file after the other. Bodies go to `bodies`, if somebody wants to compare them."""

    def __init__(self, troubles: Troubles, bodies: BodySpool | None = None) -> None:
        self._troubles = troubles
        self._bodies = bodies

    def calls(self, file: str, documents: Iterable[tuple[int, Any]]) -> Iterator[Call]:
        """The calls of a file. Events of a stream that stand on lines of their own are put together."""
        streams = _Streams(file)
        for line, document in documents:
            place = Place(file, line)
            if not isinstance(document, dict):
                self._troubles.add(Trouble.NO_CALL, place)
                continue
            if is_event(document) or streams.has(document):
                finished = streams.take(document, place)
                if finished is not None:
                    yield from self._call(*finished, {}, None)
                continue
            yield from self._document(document, place)
        for answer, place in streams.rest():
            yield from self._call(answer, place, {}, None)

    def _document(self, document: Json, place: Place) -> Iterator[Call]:
        if is_answer(document):
            answer = read_answer(document)
            if answer is not None:
                yield from self._call(answer, place, document, None)
            return
        recorded = None if _REQUESTS.isdisjoint(document) else recorded_of(document, place)
        value = next((document[name] for name in _ANSWERS if document.get(name) is not None), None)
        answer = read_answer(value) or folded([document])
        if answer is None:
            self._troubles.add(_why_none(document, value, recorded), place)
            return
        yield from self._call(answer, place, document, recorded)

    def _call(
        self, answer: Answer, place: Place, document: Json, recorded: Recorded | None
    ) -> Iterator[Call]:
        if answer.is_failure:
            self._troubles.add(Trouble.FAILED, place)
            return
        if answer.usage is None:
            self._troubles.add(Trouble.NO_USAGE, place)
        call = Call(answer.source, request_id=answer.request_id, model=answer.model, finish=answer.finish)
        usage = _usage(answer, place, self._troubles)
        set_usage(call, usage)
        if document:
            _describe(call, document, recorded)
        if call.at is None:
            call.at = answer.created
        if recorded is not None:
            self._keep(call, recorded, usage)
        yield call

    def _keep(self, call: Call, recorded: Recorded, usage: Usage) -> None:
        call.model = recorded.model or call.model
        if call.at is None:
            call.at = moment(recorded.at)
        print_body(call, recorded.body)
        if self._bodies is not None:
            call.body = self._bodies.add(recorded, call, usage)


def set_usage(call: Call, usage: Usage) -> None:
    """Write an answer's tokens into its call."""
    call.prompt, call.read, call.output = usage.prompt, usage.read, usage.output
    call.written, call.by_ttl = usage.write_total, usage.written
    call.mode = call.mode or usage.mode


class _Streams:
    """Answers whose events come line by line. Chunks tell their answer's id, Anthropic's events do not."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: OrderedDict[str, tuple[Answer, Place]] = OrderedDict()
        self._last: dict[Source, str] = {}
        self._unnamed = 0

    def take(self, event: Json, place: Place) -> tuple[Answer, Place] | None:
        """Fold an event in; an answer that is out of reach of later events comes back."""
        source = event_source(event)
        if source is None or (source is Source.OPENAI_RESPONSES and "response" not in event):
            return None
        key = self._key(source, event, place)
        if key not in self._open:
            self._open[key] = Answer(source), place
        fold(self._open[key][0], event)
        if _is_last(event):
            self._last.pop(source, None)
            return self._open.pop(key)
        if len(self._open) > _OPEN_STREAMS:
            return self._open.popitem(last=False)[1]
        return None

    def has(self, document: Json) -> bool:
        """Whether this is the end of a stream that was seen before: DashScope's looks like a whole answer."""
        return bool(self._open) and f"{Source.DASHSCOPE} {document.get('request_id')}" in self._open

    def rest(self) -> Iterator[tuple[Answer, Place]]:
        """What has no end in this file."""
        yield from self._open.values()

    def _key(self, source: Source, event: Json, place: Place) -> str:
        response = event.get("response")
        named = response.get("id") if isinstance(response, dict) else None
        if source in (Source.OPENAI_CHAT, Source.DASHSCOPE):
            named = event.get("id") or event.get("request_id")
        if event.get("type") in ("message_start", "response.created") or (
            named is None and source not in self._last
        ):
            return self._begin(source, named, place)
        if named is not None:
            return f"{source} {named}"
        return self._last[source]

    def _begin(self, source: Source, named: Any, place: Place) -> str:
        if source is Source.ANTHROPIC and source in self._last:
            raise UnreadableFile(
                f"{place}: a message begins before the one of line "
                f"{self._open[self._last[source]][1].line} has ended, and their events do not say to which "
                "of them they belong. Log the events of each message as a list in one line."
            )
        self._unnamed += 1
        key = f"{source} {named or self._unnamed}"
        self._last[source] = key
        return key


def _is_last(event: Json) -> bool:
    if event.get("type") in ("message_stop", "response.completed", "response.incomplete", "response.failed"):
        return True
    output = event.get("output")
    if isinstance(output, dict):
        return not is_event(event)
    # A chunk without choices is the one with the usage; nothing comes behind it.
    return event.get("choices") == [] and isinstance(event.get("usage"), dict)


def _usage(answer: Answer, place: Place, troubles: Troubles) -> Usage:
    try:
        return answer.classes()
    except BrokenUsage:
        troubles.add(Trouble.BROKEN_USAGE, place)
        return Usage()


def _describe(call: Call, document: Json, recorded: Recorded | None) -> None:
    label(call, _holders(document, recorded))
    response = document.get("response")
    replied = headers_of(response) if isinstance(response, dict) else {}
    if not replied and "response_headers" in document:
        replied = headers_of({"headers": document["response_headers"]})
    if replied:
        read_verdict(call, replied)
    if recorded is not None:
        call.session = call.session or recorded.session or _conversation(recorded.body)
        call.first_token = recorded.first_token if call.first_token is None else call.first_token
    inner = document.get("request")
    url = document.get("url") or (inner.get("url") if isinstance(inner, dict) else None)
    if call.provider is None and (url or document.get("base_url")):
        call.provider = provider_of_url(str(url or document["base_url"]))


def _holders(document: Json, recorded: Recorded | None) -> list[Json]:
    """Where labels may stand, the closest to the log's own first."""
    holders = [document, *(found for name in ("metadata", "request") if (found := document.get(name)))]
    if recorded is not None and recorded.headers:
        holders.append(recorded.headers)
    elif "headers" in document:
        holders.append(headers_of(document))
    if recorded is not None and recorded.body.get("metadata"):
        holders.append(recorded.body["metadata"])
    return [holder for holder in holders if isinstance(holder, dict)]


def provider_of_url(url: str) -> str | None:
    """The vendor whose address this is; None for any other."""
    host = url.split("://", 1)[-1].split("/", 1)[0].lower()
    for part, vendor in (("aliyun", "dashscope"), ("dashscope", "dashscope"), ("openai.com", "openai")):
        if part in host:
            return vendor
    return "anthropic" if "anthropic.com" in host else None


def _conversation(body: Json) -> str | None:
    found = body.get("conversation")
    if isinstance(found, dict):
        found = found.get("id")
    return found if isinstance(found, str) and found else None


def _why_none(document: Json, value: Any, recorded: Recorded | None) -> Trouble:
    if _is_failure(document) or (isinstance(value, dict) and _is_failure(value)):
        return Trouble.FAILED
    inner = value.get("body") if isinstance(value, dict) else None
    if any(is_other_operation(one) for one in (document, value, inner) if isinstance(one, dict)):
        return Trouble.OTHER_OPERATION
    if value is not None or recorded is not None:
        return Trouble.NO_ANSWER
    return Trouble.NO_CALL


def _is_failure(document: Json) -> bool:
    if document.get("error") or document.get("type") == "error":
        return True
    status = document.get("status_code", document.get("status"))
    if isinstance(status, int) and status >= 400:
        return True
    return isinstance(document.get("code"), str) and "message" in document
