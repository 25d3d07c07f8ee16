"""What of a request's body is kept for every call: digests, and the first words."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from xxhash import xxh3_64_intdigest

from hotprefix.doctor.lenient import as_sent
from hotprefix.doctor.report.call import Call
from hotprefix.doctor.report.usage import Json

_WORDS = 80
_DIGITS = re.compile(r"\d+")
_SYSTEM = ("system", "developer")


def print_body(call: Call, body: Json) -> None:
    """Fill in the prints and first words of a request's body."""
    tools = body.get("tools") or _inner(body, "parameters").get("tools")
    system, first = _texts(body)
    if tools:
        call.tools_print = xxh3_64_intdigest(as_sent(tools))
    if system:
        call.system_print = xxh3_64_intdigest(system.encode("utf-8", "surrogatepass"))
    call.words = shortened(system or first)


def shortened(text: str) -> str | None:
    """The first words of a text, in one line; None if there are none.

    Digits show as #, so that prompts which differ in a clock or a number are one prompt.
    """
    line = _DIGITS.sub("#", " ".join(text[: 4 * _WORDS].split()))
    clean = line.encode("utf-8", "replace").decode()
    return (clean if len(clean) <= _WORDS else clean[: _WORDS - 1] + "…") or None


def _texts(body: Json) -> tuple[str, str]:
    """The system text, all of it, and the first other text."""
    messages = body.get("messages")
    given = body.get("input")
    if isinstance(given, dict):
        messages = given.get("messages")
        if messages is None and isinstance(given.get("prompt"), str):
            return "", str(given["prompt"])
    elif messages is None:
        messages = given
    if isinstance(messages, str):
        return _text(body.get("instructions")), messages
    listed = [one for one in messages if isinstance(one, dict)] if isinstance(messages, list) else []
    system = [_text(body.get("system")), _text(body.get("instructions"))]
    system += [_text(one.get("content")) for one in listed if one.get("role") in _SYSTEM]
    others = (_text(one.get("content")) for one in listed if one.get("role") not in _SYSTEM)
    return "\n".join(filter(None, system)), next(filter(None, others), "")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(_parts(content)) if isinstance(content, list) else ""


def _parts(content: Iterable[Any]) -> Iterable[str]:
    for part in content:
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            yield text


def _inner(body: Json, name: str) -> Json:
    found = body.get(name)
    return found if isinstance(found, dict) else {}
