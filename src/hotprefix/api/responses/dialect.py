"""Where OpenAI's Responses API and Model Studio's differ."""

from __future__ import annotations

from typing import Any, Protocol

import orjson

from hotprefix.api.bill import Bill
from hotprefix.api.envelopes import dashscope_code
from hotprefix.api.errors import Problem
from hotprefix.api.responses.items import KNOWN_ITEMS
from hotprefix.api.responses.usage import dashscope_usage, openai_usage
from hotprefix.base.errors import RequestError
from hotprefix.sessions.errors import PreviousResponseExpired, PreviousResponseNotFound
from hotprefix.sessions.response import Chain

_SHOWN_ID = 100
_PARAM = "previous_response_id"


class Dialect(Protocol):
    """One way to speak Responses. `fullness` is the part of the window that a prompt may fill before it is
    cut; `truncation` what happens beyond it if the request doesn't say."""

    fullness: float
    truncation: str
    least_output_tokens: int
    tells_errors_in_streams: bool
    """Whether a stream that can't begin answers 200 and tells the error as its only event."""

    def lenient(self, document: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
        """The body without what this dialect accepts and ignores."""
        ...

    def broken_chain(self, wanted: str, chain: Chain) -> RequestError:
        """What to answer to a `previous_response_id` that leads nowhere."""
        ...

    def event(self, event: dict[str, Any]) -> bytes:
        """A server-sent event; it has its `sequence_number`."""
        ...

    def failure(self, problem: Problem) -> dict[str, Any]:
        """`error` of a response that failed."""
        ...

    def usage(self, bill: Bill) -> dict[str, Any]: ...


class OpenAiDialect:
    """At `/v1`."""

    fullness = 1.0
    truncation = "disabled"
    least_output_tokens = 1
    tells_errors_in_streams = False

    def lenient(self, document: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
        return document

    def broken_chain(self, wanted: str, chain: Chain) -> RequestError:
        shown, buried, missing = wanted[:_SHOWN_ID], chain.buried, chain.missing
        if buried is not None:
            return PreviousResponseExpired(
                f"Previous response '{shown}' has expired: the first {buried.depth} turns of its chain are "
                "not kept any more. Send the conversation as input to go on.",
                param=_PARAM,
            )
        if missing is not None and missing != wanted:
            return PreviousResponseNotFound(
                f"Previous response '{shown}' needs '{missing}' before it, which was deleted. Send the "
                "conversation as input to go on.",
                param=_PARAM,
            )
        return PreviousResponseNotFound(f"Previous response with id '{shown}' not found.", param=_PARAM)

    def event(self, event: dict[str, Any]) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (event["type"].encode(), orjson.dumps(event))

    def failure(self, problem: Problem) -> dict[str, Any]:
        code = "rate_limit_exceeded" if problem.status == 429 else "server_error"
        return {"code": code, "message": problem.message}

    def usage(self, bill: Bill) -> dict[str, Any]:
        return openai_usage(bill)


class DashScopeDialect:
    """At `/compatible-mode/v1`: accepts more than it has, and truncates unless told not to."""

    fullness = 0.8
    truncation = "auto"
    least_output_tokens = 16
    tells_errors_in_streams = True

    def lenient(self, document: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
        document = dict(document)
        for field, known in (("tools", {"function"}), ("input", KNOWN_ITEMS)):
            if isinstance(value := document.get(field), list):
                document[field] = [
                    item for number, item in enumerate(value)
                    if _is_known(item, known, f"{field}[{number}]", warnings)
                ]  # fmt: skip
        if isinstance(choice := document.get("tool_choice"), dict) and choice.get("type") != "function":
            warnings.append("tool_choice has no effect: only functions can be chosen")
            del document["tool_choice"]
        return document

    def broken_chain(self, wanted: str, chain: Chain) -> RequestError:
        message = f"Not found previous_response_id: {wanted[:_SHOWN_ID]}"
        if chain.buried is not None:
            message += f" (expired; the first {chain.buried.depth} turns of its chain are not kept any more)"
            return PreviousResponseExpired(message, param=_PARAM)
        return PreviousResponseNotFound(message, param=_PARAM)

    def event(self, event: dict[str, Any]) -> bytes:
        # No space after the colons: the vendor's own clients look for `event:error` as it stands.
        return b"id:%d\nevent:%b\n:HTTP_STATUS/200\ndata:%b\n\n" % (
            event["sequence_number"] + 1,
            event["type"].encode(),
            orjson.dumps(event),
        )

    def failure(self, problem: Problem) -> dict[str, Any]:
        return {"code": dashscope_code(problem), "message": problem.message}

    def usage(self, bill: Bill) -> dict[str, Any]:
        return dashscope_usage(bill)


def _is_known(item: Any, known: set[str] | frozenset[str], path: str, warnings: list[str]) -> bool:
    """Whether an item or tool is one that is understood; what is no object at all is left to the checks."""
    kind = item.get("type", "message") if isinstance(item, dict) else None
    if not isinstance(kind, str) or kind in known:
        return True
    warnings.append(f"{path} has no effect: {kind[:40]} is not offered here")
    return False
