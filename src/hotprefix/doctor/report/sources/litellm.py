"""LiteLLM's logs: rows of LiteLLM_SpendLogs, and the payload that its callbacks get.

Field names as in BerriAI/litellm: `SpendLogsPayload` (proxy/_types.py, filled in by
proxy/spend_tracking/spend_tracking_utils.py) and `StandardLoggingPayload` (types/utils.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import orjson

from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import recorded_of
from hotprefix.doctor.report.bodies import BodySpool
from hotprefix.doctor.report.call import Call, Source
from hotprefix.doctor.report.labels import moment
from hotprefix.doctor.report.prints import print_body
from hotprefix.doctor.report.sources.answers import set_usage
from hotprefix.doctor.report.trouble import Trouble, Troubles
from hotprefix.doctor.report.usage import BrokenUsage, Json, Usage, chat_usage, count
from hotprefix.ledger.columns import to_pico

_CALLS = ("completion", "responses", "anthropic_messages", "generate_content", "pass_through")
_TOO_MUCH = 1_000_000
"""For one call: such a number is no price, and sums of more would end."""
_NO_CALLS = ("embedding", "image", "speech", "transcription", "moderation", "rerank", "batch", "file", "ocr")


def is_litellm(document: Json) -> bool:
    """Whether a document is one of LiteLLM's."""
    if "standard_logging_object" in document or "litellm_params" in document:
        return True
    if not ("call_type" in document and "prompt_tokens" in document):
        return False
    return "spend" in document or "response_cost" in document or "api_key" in document


class LiteLlmLog:
    """Reads one file after the other. Bodies go to `bodies`, if somebody wants to compare them."""

    def __init__(self, troubles: Troubles, bodies: BodySpool | None = None) -> None:
        self._troubles = troubles
        self._bodies = bodies

    def calls(self, file: str, documents: Iterable[tuple[int, Any]]) -> Iterator[Call]:
        """The calls of a file that reached a model and came back."""
        for line, document in documents:
            place = Place(file, line)
            payload = _payload(document)
            why = Trouble.NO_CALL if payload is None else _why_not(payload)
            if payload is None or why is not None:
                self._troubles.add(why or Trouble.NO_CALL, place)
                continue
            yield self._call(payload, place)

    def _call(self, payload: Json, place: Place) -> Call:
        metadata = _object(payload.get("metadata"))
        call = Call(
            Source.LITELLM,
            request_id=_text(payload, "request_id", "id"),
            model=_text(payload, "model"),
            provider=_text(payload, "custom_llm_provider"),
            session=_text(payload, "session_id", "trace_id"),
            tenant=_text(metadata, "user_api_key_team_alias")
            or _text(payload, "team_id", "user", "end_user")
            or _text(metadata, "user_api_key_team_id", "user_api_key_user_id"),
        )
        _set_labels(call, payload, metadata)
        _set_times(call, payload)
        _set_money(call, payload)
        usage = Usage()
        try:
            usage = _usage(payload, metadata, place, self._troubles)
        except BrokenUsage:
            self._troubles.add(Trouble.BROKEN_USAGE, place)
        set_usage(call, usage)
        self._set_body(call, payload, place, usage)
        return call

    def _set_body(self, call: Call, payload: Json, place: Place, usage: Usage) -> None:
        body = _object(payload.get("proxy_server_request"))
        if not body and isinstance(payload.get("messages"), list):
            parameters = _object(payload.get("model_parameters"))
            body = {"model": call.model, "messages": payload["messages"], **parameters}
        recorded = recorded_of({"body": body}, place) if body else None
        if recorded is None:
            return
        print_body(call, recorded.body)
        if self._bodies is not None:
            call.body = self._bodies.add(recorded, call, usage)


def _payload(document: Any) -> Json | None:
    if not isinstance(document, dict):
        return None
    inner = document.get("standard_logging_object")
    payload = inner if isinstance(inner, dict) else document
    return payload if "prompt_tokens" in payload else None


def _why_not(payload: Json) -> Trouble | None:
    kind = str(payload.get("call_type") or "completion").lower()
    if any(word in kind for word in _NO_CALLS) or not any(word in kind for word in _CALLS):
        return Trouble.OTHER_OPERATION
    if str(payload.get("status") or "success") == "failure":
        return Trouble.FAILED
    if str(payload.get("cache_hit")).lower() == "true":
        return Trouble.GATEWAY_CACHE
    return None


def _usage(payload: Json, metadata: Json, place: Place, troubles: Troubles) -> Usage:
    """`prompt_tokens` include what was cached; versions that did not do so yet are told by their sums."""
    response = _object(payload.get("response"))
    told = (
        _object(metadata.get("usage_object"))
        or _object(metadata.get("additional_usage_values"))
        or _object(response.get("usage"))
    )
    usage = {name: value for name, value in told.items() if value is not None}
    usage |= {name: payload.get(name) for name in ("prompt_tokens", "completion_tokens")}
    read, written = count(usage, "cache_read_input_tokens"), count(usage, "cache_creation_input_tokens")
    prompt = count(usage, "prompt_tokens")
    if prompt is not None and (read or 0) + (written or 0) > prompt:
        troubles.add(Trouble.BESIDE, place)
        usage["prompt_tokens"] = prompt + (read or 0) + (written or 0)
    return chat_usage(usage)


def _set_labels(call: Call, payload: Json, metadata: Json) -> None:
    own = _object(metadata.get("spend_logs_metadata"))
    prompt = _object(metadata.get("prompt_management_metadata"))
    call.prompt_name = _text(own, "prompt_name") or _text(prompt, "prompt_id")
    call.prompt_version = _text(own, "prompt_version")
    tags = payload.get("request_tags")
    if isinstance(tags, str):
        tags = _loaded(tags)
    listed = map(str, tags) if isinstance(tags, list) else ()
    # Some versions put the client's name first.
    own_tags = (tag for tag in listed if not tag.startswith("User-Agent:"))
    call.scene = _text(own, "scene") or next(own_tags, None)


def _set_times(call: Call, payload: Json) -> None:
    start, end = moment(payload.get("startTime")), moment(payload.get("endTime"))
    first = moment(payload.get("completionStartTime"))
    call.at = start
    if start is not None and end is not None and end >= start:
        call.total = end - start
    # Without a stream the first token is said to have come at the end, which nobody saw.
    if start is not None and first is not None and first >= start and payload.get("stream") is not False:
        call.first_token = first - start if end is None or first < end else None


def _set_money(call: Call, payload: Json) -> None:
    value = payload.get("spend", payload.get("response_cost"))
    try:
        money = Decimal(str(value)) if value is not None else None
    except InvalidOperation:
        return
    # LiteLLM books a call without a known price at 0.
    if money is not None and money.is_finite() and 0 < money < _TOO_MUCH:
        call.money, call.currency = to_pico(money), "USD"


def _object(value: Any) -> Json:
    if isinstance(value, str) and value[:1] == "{":
        value = _loaded(value)
    return value if isinstance(value, dict) else {}


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _text(holder: Json, *names: str) -> str | None:
    return next((str(holder[name]) for name in names if holder.get(name) not in (None, "")), None)
