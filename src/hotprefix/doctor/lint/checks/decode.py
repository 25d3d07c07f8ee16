"""Decode parameters of tasks whose answer is short."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.context import Context
from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.phrase import Phrase
from hotprefix.doctor.lint.request import LintRequest, Part
from hotprefix.doctor.lint.severity import Severity

SHORT_ANSWER = 128
"""Tokens up to which an answer counts as short."""

_LIMITS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_WIDE = 512
_HOT = 0.3
_LOOSE = 0.5
_STRICT_TOP_P = 0.1
_ASKS_FOR_LITTLE = re.compile(
    r"\b(?:answer|reply|respond|output|return)\s+(?:with\s+)?(?:only|just|exactly)?\s*"
    r"(?:one|a single|only the|just the|"
    r"exactly one|the)\s+(?:\w+\s+)?(?:word|label|category|class|intent|number|letter|tag|id)\b(?!\s+of)"
    r"|\bonly (?:output|return|answer with|reply with) (?:the|one) (?:\w+\s+)?"
    r"(?:word|label|category|class|intent|number|letter|tag)\b"
    r"|只(?:需)?(?:输出|返回|回答)(?:一个)?(?:意图|类别|标签|分类|数字|字母|词|编号)",
    re.IGNORECASE,
)


def check_decode(context: Context) -> Iterator[LintFinding]:
    """Only where the answer is short: by its limit, or because the prompt says so."""
    request = context.request
    limit = _limit(request.settings)
    asks = _ASKS_FOR_LITTLE.search(request.system_text) is not None
    yield from _result_format(context)
    if request.tools or not (asks or (limit is not None and limit <= SHORT_ANSWER)):
        return
    yield from _sampling(context)
    yield from _length(context, limit)
    if request.settings.get("stream") is True:
        yield context.finding("HP703", _path(request, "stream"))
    if context.is_strict:
        yield from _history(context)


def _limit(settings: Mapping[str, Any]) -> int | None:
    found = next((settings[name] for name in _LIMITS if settings.get(name) is not None), None)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _sampling(context: Context) -> Iterator[LintFinding]:
    request = context.request
    temperature, top_p = request.settings.get("temperature"), request.settings.get("top_p")
    if _is_above(temperature, 0 if context.is_strict else _HOT):
        yield context.finding("HP701", _path(request, "temperature"), shown=f"temperature {temperature}")
    elif temperature is None and _is_above(top_p, _LOOSE):
        yield context.finding("HP701", _path(request, "top_p"), shown=f"top_p {top_p}")
    elif context.is_strict and temperature is None:
        yield context.finding("HP701", "", shown=Phrase("no temperature", "未设置 temperature"))
    elif context.is_strict and _is_above(top_p, _STRICT_TOP_P):
        yield context.finding("HP701", _path(request, "top_p"), shown=f"top_p {top_p}")


def _length(context: Context, limit: int | None) -> Iterator[LintFinding]:
    request = context.request
    name = next((name for name in _LIMITS if name in request.settings), "")
    if limit is None and not name:
        yield context.finding("HP702", "", shown=Phrase("max_tokens is not set", "未设置 max_tokens"))
    elif limit is not None and limit > _WIDE:
        yield context.finding("HP702", _path(request, name), shown=f"{name} = {limit}")


def _history(context: Context) -> Iterator[LintFinding]:
    request = context.request
    answered = {block.message for block in request.blocks if block.role == "assistant"}
    history = [block for block in request.blocks[: request.newest] if block.part is Part.HISTORY]
    if answered and history:
        lost = sum(context.ruler.measure.count(block.text) for block in history)
        count = len({block.message for block in history})
        yield context.finding("HP705", history[0].path, count=count, lost=lost)


def _result_format(context: Context) -> Iterator[LintFinding]:
    request = context.request
    if request.dialect is not Dialect.DASHSCOPE:
        return
    form = request.settings.get("result_format")
    needs = bool(request.tools) or any(block.path.endswith("]") for block in request.blocks)
    if isinstance(form, str) and form != "message" and needs:
        path = _path(request, "result_format")
        yield context.finding("HP704", path, severity=Severity.WARNING, shown=form)
    elif context.is_strict and form is None:
        yield context.finding("HP704", "", shown=Phrase("not set", "未设置"))


def _path(request: LintRequest, name: str) -> str:
    return f"{request.settings_root}{name}"


def _is_above(value: Any, most: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > most
