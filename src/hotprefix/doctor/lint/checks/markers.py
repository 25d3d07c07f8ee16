"""Markers: their form, their place, their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.context import Context, is_marker
from hotprefix.doctor.lint.edits import Fix
from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.json_fixes import move_into_last_block, move_into_string, remove_member
from hotprefix.doctor.lint.phrase import Phrase
from hotprefix.doctor.lint.request import LintRequest, MarkerUse, Where
from hotprefix.doctor.lint.severity import Severity
from hotprefix.doctor.lint.suspect import Hole, is_known
from hotprefix.doctor.lint.unfold import MARKER
from hotprefix.profiles.profile import ExplicitRules, Surplus, ToolMarkers

_IGNORED = Phrase("count for nothing", "未生效")
_REFUSED = Phrase("make the request an error", "会使请求报错")


def check_markers(context: Context) -> Iterator[LintFinding]:
    """Each marker by itself, then all together."""
    rules = context.profile.explicit
    if context.request.dialect is Dialect.RESPONSES:
        yield from (_null(context, use) for use in context.request.markers if use.value is None)
        return
    for use in context.request.markers:
        yield from _each(context, rules, use)
    real = [use for use in context.request.markers if is_marker(use.value)]
    if real and rules is None:
        yield context.finding("HP406", real[0].path)
    elif real and not context.has_explicit_cache:
        yield context.finding("HP405", real[0].path, listed=context.models.listed)
    elif rules is not None:
        yield from _too_many(context, rules, context.markers)
        yield from _ttl_order(context, rules, context.markers)


def _each(context: Context, rules: ExplicitRules | None, use: MarkerUse) -> Iterator[LintFinding]:
    if use.value is None:
        yield _null(context, use)
        return
    if not is_known(use.value):
        return
    if use.where is Where.MESSAGE:
        yield _on_message(context, use)
    elif use.where is Where.OTHER:
        yield context.finding("HP307", use.path)
    elif rules is None:
        return
    elif use.where is Where.TOP and not rules.automatic_marker:
        yield context.finding("HP307", use.path)
    elif use.where is Where.TOOL and rules.tool_markers is ToolMarkers.IGNORED:
        yield context.finding("HP306", use.path)
    yield from _unknown(context, rules, use)


def _null(context: Context, use: MarkerUse) -> LintFinding:
    fix = context.request.source.fix(lambda tree: remove_member(tree, use.owner, MARKER))
    return context.finding("HP303", use.path, fix=fix)


def _on_message(context: Context, use: MarkerUse) -> LintFinding:
    content = _value_at(context.request, use.owner)
    is_array = isinstance(content, list)
    move: Callable[[Any, str], Fix | None] = move_into_last_block if is_array else move_into_string
    fix = context.request.source.fix(lambda tree: move(tree, use.owner)) if is_marker(use.value) else None
    return context.finding("HP302" if is_array else "HP301", use.path, fix=fix)


def _value_at(request: LintRequest, owner: str) -> Any:
    """The content of the message at `owner`: a list if its blocks have numbers of their own."""
    content = f"{owner}.content"
    found = next((block for block in request.blocks if block.path.startswith(content)), None)
    return [] if found is not None and found.path != content else ""


def _unknown(context: Context, rules: ExplicitRules | None, use: MarkerUse) -> Iterator[LintFinding]:
    if rules is None:
        return
    value = use.value
    ttl = value.get("ttl") if isinstance(value, Mapping) else None
    if isinstance(ttl, Hole) or (isinstance(value, Mapping) and isinstance(value.get("type"), Hole)):
        return
    is_known_ttl = ttl is None or ttl in rules.ttls
    if is_marker(value) and is_known_ttl:
        return
    # An unknown lifetime falls back to the usual one; an unknown kind of marker is none.
    severity = Severity.WARNING if is_marker(value) else Severity.ERROR
    ttls = ", ".join(rules.ttls)
    yield context.finding("HP304", use.path, severity=severity, shown=str(value)[:80], ttls=ttls)


def _too_many(context: Context, rules: ExplicitRules, markers: Sequence[MarkerUse]) -> Iterator[LintFinding]:
    surplus = len(markers) - rules.max_markers
    if surplus <= 0:
        return
    is_refused = rules.surplus is Surplus.REJECT
    ignored = markers if is_refused else markers[:surplus]
    yield context.finding(
        "HP305",
        ignored[0].path,
        severity=Severity.ERROR if is_refused else None,
        count=len(markers),
        most=rules.max_markers,
        ignored=", ".join(use.path for use in ignored),
        effect=_REFUSED if is_refused else _IGNORED,
    )


def _ttl_order(context: Context, rules: ExplicitRules, markers: Sequence[MarkerUse]) -> Iterator[LintFinding]:
    if not rules.longer_ttl_first:
        return
    shortest: tuple[int, str] | None = None
    for use in markers:
        name = use.value.get("ttl") or rules.default_ttl
        seconds = rules.ttls.get(name) if isinstance(name, str) else None
        if seconds is None:
            continue
        if shortest is not None and seconds > shortest[0]:
            yield context.finding("HP308", use.path, longer=name, shorter=shortest[1])
            return
        if shortest is None or seconds < shortest[0]:
            shortest = seconds, name
