"""Requests of a log that failed: a report leaves them out, but an arm has to answer for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import recorded_of
from hotprefix.doctor.report.answer import read_answer
from hotprefix.doctor.report.call import Call, Source
from hotprefix.doctor.report.labels import headers_of, label
from hotprefix.doctor.report.opening import Form, documents, form_of

FAILED = "error"
_DOCUMENTS = (Form.LINES, Form.WHOLE)
_ANSWERS = ("response", "response_body", "output_body")


def failed_calls(log: str) -> Iterator[Call]:
    """The failed requests of a log of JSON documents that name their prompt; none for other forms."""
    path = Path(log)
    if "://" in log or (form := form_of(path)) not in _DOCUMENTS:
        return
    for line, document in documents(path, form):
        if not isinstance(document, Mapping) or not _is_failure(document) or _is_counted(document):
            continue
        recorded = recorded_of(document, Place(log, line))
        body: Mapping[str, Any] = recorded.body if recorded is not None else {}
        inner = _inner(document, ("request",))
        sent = headers_of(document) or headers_of(inner)
        call = Call(Source.OPENAI_CHAT, finish=FAILED)
        label(call, (document, _inner(document, ("metadata",)), inner, sent, _inner(body, ("metadata",))))
        if call.prompt_name is not None:
            yield call


def _inner(holder: Mapping[str, Any], names: tuple[str, ...]) -> Mapping[str, Any]:
    return next((found for name in names if isinstance(found := holder.get(name), Mapping)), {})


def _is_counted(document: Mapping[str, Any]) -> bool:
    """Whether the report has it as a call, since it came back with its usage, and so as a failed one."""
    for part in (document, *(document.get(name) for name in _ANSWERS)):
        answer = read_answer(part)
        if answer is not None and answer.usage is not None:
            return True
    return False


def _is_failure(document: Mapping[str, Any]) -> bool:
    answer = _inner(document, _ANSWERS)
    return any(_says_failure(part) for part in (document, answer, _inner(answer, ("body",))))


def _says_failure(part: Mapping[str, Any]) -> bool:
    if part.get("error") or part.get("type") == "error" or part.get("exception"):
        return True
    status = part.get("status_code", part.get("status"))
    if isinstance(status, int) and not isinstance(status, bool):
        return status >= 400
    return status in ("failure", "failed")
