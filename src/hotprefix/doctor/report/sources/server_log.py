"""The JSON lines that our server logs: one a request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hotprefix.doctor.place import Place
from hotprefix.doctor.report.call import Call, Source
from hotprefix.doctor.report.labels import duration, moment, read_verdict
from hotprefix.doctor.report.trouble import Trouble, Troubles
from hotprefix.doctor.report.usage import BrokenUsage, Json, Usage, count


def is_server_log(document: Json) -> bool:
    """Whether a document is a line of our server's log."""
    return "level" in document and "event" in document and "timestamp" in document


class ServerLog:
    """Reads one file after the other. Lines of other events, and of requests that failed, are no calls."""

    def __init__(self, troubles: Troubles) -> None:
        self._troubles = troubles

    def calls(self, file: str, documents: Iterable[tuple[int, Any]]) -> Iterator[Call]:
        """The calls of a file."""
        for line, document in documents:
            if not isinstance(document, dict) or "request_id" not in document:
                continue
            if "prompt_tokens" not in document:
                if "error" in document:
                    self._troubles.add(Trouble.FAILED, Place(file, line))
                continue
            yield self._call(document, Place(file, line))

    def _call(self, line: Json, place: Place) -> Call:
        call = Call(Source.SERVER_LOG, request_id=str(line["request_id"]), at=moment(line.get("timestamp")))
        call.model = str(line["model"]) if line.get("model") else None
        call.finish = str(line["finish_reason"]) if line.get("finish_reason") else None
        call.first_token = duration(line.get("ttft_ms"), 1000.0)
        call.total = duration(line.get("total_ms"), 1000.0)
        read_verdict(call, line)
        try:
            usage = Usage(
                count(line, "prompt_tokens"),
                count(line, "cached_tokens"),
                output=count(line, "completion_tokens"),
            )
        except BrokenUsage:
            self._troubles.add(Trouble.BROKEN_USAGE, place)
            return call
        call.prompt, call.read, call.output = usage.prompt, usage.read, usage.output
        return call
