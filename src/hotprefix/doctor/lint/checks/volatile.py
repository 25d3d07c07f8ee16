"""Text that changes, in the part of the prompt that should not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from typing import Any

from hotprefix.doctor.lint.context import Context, excerpt_of
from hotprefix.doctor.lint.finding import Excerpt, LintFinding
from hotprefix.doctor.lint.phrase import Phrase, lost_behind, lost_with_history
from hotprefix.doctor.lint.request import Block, Origin, Part
from hotprefix.doctor.lint.severity import Severity
from hotprefix.doctor.lint.shapes import homes_in, suspects_in
from hotprefix.doctor.lint.suspect import Cause, Suspect
from hotprefix.doctor.place import Place

_RULES = {
    Cause.TIME: "HP101",
    Cause.DAY: "HP101",
    Cause.ID: "HP102",
    Cause.ENV: "HP103",
    Cause.HEADER: "HP105",
    Cause.ORDER: "HP501",
    Cause.JSON: "HP502",
}
_LEAST_LOSS = 32
"""Tokens below which a loss is only worth a remark."""
_LEAST_FIXED = 200
"""Tokens of fixed text behind a variable part that are worth moving."""
_DEEPEST = 40
_CALL = ".tool_calls["
_TOOLS = Phrase("the tools", "工具定义")
_PROMPT = Phrase("the prompt", "提示词")


def check_volatile(context: Context) -> Iterator[LintFinding]:
    """Suspects in every block before the newest turn."""
    request = context.request
    for number, block in enumerate(request.blocks):
        if number < request.newest or block.part is not Part.HISTORY:
            for path, text, suspect in _suspects(request.origin, block):
                found = _judged(context, number, path, text, suspect)
                if found is not None:
                    yield found
        yield from _variables(context, number, block)
    for suspect in request.open_tools:
        if suspect.cause in _RULES:
            yield _in_open_tools(context, suspect)


def _suspects(origin: Origin, block: Block) -> Iterator[tuple[str, str, Suspect]]:
    """What may change, with the path and text of the string that it is in."""
    if origin is not Origin.DATA:
        yield from ((block.path, block.text, suspect) for suspect in block.suspects)
    elif block.part is Part.SYSTEM:
        yield from ((block.path, block.text, suspect) for suspect in suspects_in(block.text))


def text_key(path: str, text: str) -> str:
    """Names a text at a path: found again with the same key, it did not change."""
    return f"{path} {blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=12).hexdigest()}"


def check_schemas(context: Context) -> Iterator[LintFinding]:
    """Text in tool definitions that only one user, machine or moment has."""
    if context.request.origin is not Origin.DATA:
        return
    numbers = {block.path: number for number, block in enumerate(context.request.blocks)}
    for tool in context.request.tools:
        number = numbers[tool.path]
        for path, text in _strings(tool.definition, tool.path, 0):
            for suspect in (*suspects_in(text), *homes_in(text)):
                found = _judged(context, number, path, text, suspect)
                if found is not None:
                    yield found


def _judged(context: Context, number: int, path: str, text: str, suspect: Suspect) -> LintFinding | None:
    marked = context.last_marked
    if suspect.cause not in _RULES or (marked is not None and number > marked):
        return None  # behind the last marker nothing is cached, so nothing can be lost
    block = context.request.blocks[number]
    is_tool = block.part is Part.TOOLS
    offset = context.layout.before(number, 0 if is_tool else suspect.start)
    lost = max(0, _end(context, number) - context.layout.before(number, 0 if is_tool else suspect.end))
    rule = _RULES[suspect.cause]
    if suspect.cause not in (Cause.ORDER, Cause.JSON):
        rule = "HP104" if is_tool else "HP106" if block.part is Part.HISTORY else rule
    return context.finding(
        rule,
        _place(context, path, suspect),
        severity=_severity(context, number, suspect, lost),
        excerpt=_excerpt(context, text, suspect),
        fix=suspect.fix,
        key=text_key(path, text) if context.request.origin is Origin.DATA else "",
        shown=suspect.shown,
        loss=_loss(context, suspect, offset, lost),
        lost=lost,
        offset=offset,
        target=_TOOLS if is_tool else _PROMPT,
    )


def _in_open_tools(context: Context, suspect: Suspect) -> LintFinding:
    rule = _RULES[suspect.cause] if suspect.cause in (Cause.ORDER, Cause.JSON) else "HP104"
    place = _place(context, "tools", suspect)
    loss = Phrase("All that follows is computed again.", "其后的全部内容会被重复计算。")
    return context.finding(rule, place, fix=suspect.fix, shown=suspect.shown, target=_TOOLS, loss=loss)


def _end(context: Context, number: int) -> int:
    """Up to where tokens could be read, were it not for the suspect: the last marker, or the newest turn."""
    request, layout = context.request, context.layout
    if context.last_marked is not None:
        return layout.up_to(context.last_marked)
    if request.newest >= len(request.blocks):
        return layout.total
    return layout.before(max(number, request.newest))


def _severity(context: Context, number: int, suspect: Suspect, lost: int) -> Severity | None:
    """None: as the rule says."""
    is_certain = suspect.cause not in (Cause.ORDER, Cause.JSON)
    if suspect.cause is Cause.JSON and _CALL not in context.request.blocks[number].path:
        return Severity.INFO  # mostly keys come in the same order; arguments of calls were written by a model
    if suspect.cause is Cause.DAY or (suspect.is_frozen and is_certain):
        return Severity.INFO  # one break a day, or one for each start of the program
    is_unmarked = context.last_marked is None or suspect.is_kept
    if lost < _LEAST_LOSS and not _costs_history(context, suspect) and is_unmarked:
        return Severity.INFO
    is_code = context.request.origin is not Origin.DATA
    return Severity.ERROR if is_code and is_certain and context.last_marked is not None else None


def _costs_history(context: Context, suspect: Suspect) -> bool:
    """Whether a history that is not known here is computed again; not where an object keeps what it read."""
    return context.request.has_open_history and not suspect.is_kept


def _loss(context: Context, suspect: Suspect, offset: int, lost: int) -> Phrase:
    if _costs_history(context, suspect) and context.last_marked is None:
        return lost_with_history(offset, lost)
    return lost_behind(offset, context.layout.total, lost, is_exact=context.ruler.is_exact)


def _variables(context: Context, number: int, block: Block) -> Iterator[LintFinding]:
    """The first thing that every request brings anew, if much fixed text stands behind it."""
    found = next((s for s in block.suspects if s.cause is Cause.VARIABLE), None)
    if found is None:
        return
    behind = context.ruler.measure.count(block.text[found.end :])
    if number < context.request.newest:
        behind += context.layout.up_to(context.request.newest - 1) - context.layout.up_to(number)
    if behind >= _LEAST_FIXED:
        place = _place(context, block.path, found)
        excerpt = _excerpt(context, block.text, found)
        yield context.finding("HP107", place, shown=found.shown, lost=behind, excerpt=excerpt)


def _place(context: Context, path: str, suspect: Suspect) -> Place:
    if suspect.line:
        file = suspect.file or context.request.recorded.place.file
        return Place(file, suspect.line, suspect.column, path)
    return context.request.source.place(path, suspect.start)


def _excerpt(context: Context, text: str, suspect: Suspect) -> Excerpt | None:
    # In programs the line of the source says more, and is shown by the reports.
    return excerpt_of(text, suspect.start, suspect.end) if not suspect.line else None


def _strings(value: Any, path: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path, value
    elif depth < _DEEPEST:
        items: Iterable[tuple[str, Any]] = ()
        if isinstance(value, Mapping):
            items = ((f"{path}.{key}", item) for key, item in value.items())
        elif isinstance(value, list):
            items = ((f"{path}[{index}]", item) for index, item in enumerate(value))
        for place, item in items:
            yield from _strings(item, place, depth + 1)
