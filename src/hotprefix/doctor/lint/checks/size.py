"""Prefixes too short to be cached, and long ones that nobody marked."""

from __future__ import annotations

from collections.abc import Iterator

from hotprefix.diagnosis.facts import EXPLICIT, IMPLICIT, SESSION
from hotprefix.doctor.lint.context import Context
from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.phrase import Phrase, counted
from hotprefix.doctor.lint.request import Origin
from hotprefix.doctor.lint.severity import Severity

_MODES = {IMPLICIT: Phrase("implicit", "隐式"), SESSION: Phrase("session", "会话")}
_MEDIA = "<image "
_LEAST = 2
"""Profiles with a smaller minimum have none to speak of."""


def check_size(context: Context) -> Iterator[LintFinding]:
    """By the mode that the request will use."""
    request = context.request
    if not request.blocks or any(block.text.startswith(_MEDIA) for block in request.blocks):
        return  # an image has as many tokens as its size makes
    if context.mode == EXPLICIT:
        yield from _marked(context)
    elif context.mode in _MODES:
        yield from _whole(context)
    elif context.profile.explicit is not None and not request.markers:
        yield from _unmarked(context)


def _marked(context: Context) -> Iterator[LintFinding]:
    last, rules = context.last_marked, context.profile.explicit
    if last is None or rules is None or _is_open(context, last + 1):
        return
    minimum = rules.minimum_for(context.request.model)
    path = context.request.blocks[last].path
    yield from _judged(context, "HP201", path, context.layout.up_to(last), minimum)


def _whole(context: Context) -> Iterator[LintFinding]:
    request, profile = context.request, context.profile
    minimum = profile.implicit.minimum_for(request.model) if profile.implicit is not None else 0
    if context.mode == SESSION:
        minimum = profile.session.minimum if profile.session is not None else 0
    tokens, path = context.layout.total, request.blocks[0].path
    if request.origin is not Origin.DATA:
        # Only what is written in the program is the same each time.
        if _is_open(context, request.newest) or request.newest == 0 or request.open_tools:
            return
        tokens = context.layout.up_to(request.newest - 1)
    if minimum >= _LEAST and not request.has_open_history:
        yield from _judged(context, "HP202", path, tokens, minimum)


def _judged(context: Context, rule: str, path: str, tokens: int, minimum: int) -> Iterator[LintFinding]:
    if context.is_surely_above(tokens, minimum):
        return
    is_certain = context.is_surely_below(tokens, minimum)
    severity = None
    if context.mode == SESSION or (context.request.origin is not Origin.DATA and not context.is_strict):
        severity = Severity.INFO  # a session's context grows; a program's prompt may be an example
    yield context.finding(
        rule if is_certain else "HP203",
        path,
        severity=severity if is_certain else Severity.INFO,
        tokens=tokens,
        missing=minimum - tokens,
        minimum=minimum,
        mode=_MODES.get(context.mode, Phrase("", "")),
        measure=counted(context.ruler.measure.name),
    )


def _unmarked(context: Context) -> Iterator[LintFinding]:
    request, rules = context.request, context.profile.explicit
    if rules is None or request.newest == 0 or request.has_open_history:
        return
    tokens = context.layout.up_to(request.newest - 1)
    if tokens and context.is_surely_above(tokens, rules.minimum_for(request.model)):
        measure = counted(context.ruler.measure.name)
        path = request.blocks[request.newest - 1].path
        yield context.finding("HP309", path, tokens=tokens, measure=measure)


def _is_open(context: Context, end: int) -> bool:
    """Whether a program puts more text into one of the first blocks than is known here."""
    request = context.request
    blocks = request.blocks[:end]
    return any(block.is_open or block.suspects for block in blocks) and request.origin is not Origin.DATA
