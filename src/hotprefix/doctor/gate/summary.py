"""A comparison in words: Markdown for a pull request, and annotations for its files."""

from __future__ import annotations

from collections.abc import Iterator

from hotprefix.doctor.explain.difference import plain
from hotprefix.doctor.explain.difference import visible as with_shape
from hotprefix.doctor.gate.verdict import Gate, Worse


def verdict_line(gate: Gate) -> str:
    """One sentence with the verdict."""
    before, after = f"{gate.before.share:.1%}", f"{gate.after.share:.1%}"
    word = "Passed" if gate.is_passed else "Failed"
    if gate.fall > 0:
        moved = f"fell by {100 * gate.fall:.2f} points, from {before} to {after}"
    elif gate.fall < 0:
        moved = f"rose by {-100 * gate.fall:.2f} points, from {before} to {after}"
    else:
        moved = f"stayed at {after}"
    allowed = f"at most {100 * gate.limits.points:g} points are allowed"
    if gate.limits.least:
        allowed += f", or {gate.limits.least:,} tokens"
    return f"{word}: the cacheable share {moved} ({gate.lost:,} tokens lost; {allowed})."


def change_line(one: Worse) -> str:
    """Where a request changed, in words; empty if that was not looked for."""
    if one.change is None:
        return "unchanged itself" if one.is_same else ""
    return f"first change at {one.change.path}, character {one.change.at:,}"


def more_line(more: int) -> str:
    """How many others there are; empty if none."""
    return f"and {more:,} more like it" if more else ""


def markdown(gate: Gate) -> str:
    """For a pull request."""
    return "\n".join(_markdown(gate)) + "\n"


def github_commands(gate: Gate) -> Iterator[str]:
    """Workflow commands of GitHub: one for each request that got worse, and the verdict."""
    level = "warning" if gate.is_passed else "error"
    for one in gate.worse:
        lost = f"{one.lost:,} of {one.tokens:,} tokens can be cached no more"
        told = "; ".join(filter(None, (f"{lost} {more_line(one.more)}".rstrip(), change_line(one))))
        told = f"{told}. {one.report.reason}: {one.report.advice_en}"
        yield _command(level, one, "Cacheable share fell", told)
    yield f"::{'notice' if gate.is_passed else 'error'} title=hotprefix gate::{_data(verdict_line(gate))}"


def _markdown(gate: Gate) -> Iterator[str]:
    yield f"### {'✅' if gate.is_passed else '❌'} Cacheable share of prompts"
    yield ""
    yield verdict_line(gate)
    yield ""
    yield "| | requests | prompt tokens | cacheable | share |"
    yield "|---|---:|---:|---:|---:|"
    for label, side in (("before", gate.before), ("after", gate.after)):
        yield (
            f"| {label}: {_cell(side.name)} | {side.sums.requests:,} | {side.tokens:,} | {side.read:,} "
            f"| {side.share:.1%} |"
        )
    if gate.worse:
        yield ""
        yield "| request | cacheable before | after | first change | reason |"
        yield "|---|---:|---:|---|---|"
        for one in gate.worse:
            reason = f"{one.report.reason} {one.report.detail}".strip()
            place = f"{one.place} {more_line(one.more)}".rstrip()
            cells = (place, f"{one.before:,}", f"{one.after:,}", change_line(one), reason)
            yield f"| {' | '.join(map(_cell, cells))} |"
        yield from _shown(gate.worse[0])
    for cause in gate.grown:
        yield ""
        detail, place, advice = map(_cell, (cause.detail, str(cause.place), cause.sample.advice_en))
        sums = f"{cause.before:,} → {cause.after:,} tokens lost"
        yield f"- **{cause.reason}** {detail} `{cause.pattern}`: {sums}, for example in {place}. {advice}"
    for title, files in (("Only before", gate.missing), ("Only after", gate.new)):
        if files:
            yield ""
            yield f"{title}, not compared: {', '.join(_cell(file) for file in files)}"
    for note in gate.notes:
        yield ""
        yield f"> {_cell(note)}"


def _shown(worst: Worse) -> Iterator[str]:
    """The first difference of the worst request, and what keeps it from reusing more."""
    change, divergence = worst.change, worst.report.divergence
    if change is not None:
        yield ""
        yield f"{_cell(str(worst.place))}, before and after:"
        yield from _diff(plain(change.before), plain(change.after))
    if divergence is not None and divergence.before != divergence.after:
        yield ""
        yield f"Now it differs from the request before it at `{divergence.path}`:"
        yield from _diff(with_shape(divergence.before), with_shape(divergence.after))


def _diff(before: str, after: str) -> Iterator[str]:
    fence = "```"
    while fence in before or fence in after:
        fence += "`"
    yield ""
    yield f"{fence}diff"
    yield f"- {before}"
    yield f"+ {after}"
    yield fence


def _cell(text: str) -> str:
    """Text that is no Markdown."""
    for character in "\\|`*_<>[]":
        text = text.replace(character, f"\\{character}")
    return text.replace("\n", " ")


def _command(level: str, one: Worse, title: str, told: str) -> str:
    place = f"file={_property(one.place.file)},line={max(1, one.place.line)}"
    return f"::{level} {place},title={_property(title)}::{_data(told)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
