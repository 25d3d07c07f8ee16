"""A report as one HTML file that needs nothing else, in two languages, light or dark."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from hotprefix.doctor.report import shown
from hotprefix.doctor.report.figures import PERCENTILES, Gap, Latency, Report, Timeline
from hotprefix.doctor.report.plots import Axis, Line, line_plot, log_axis, share_axis, share_bar, time_axis
from hotprefix.doctor.report.wording import (
    Language,
    cause_name,
    dimension_name,
    note_told,
    pattern_told,
    word,
)

_PACKAGE = "hotprefix.doctor.report"
_MINUTES = 2 * 86_400
"""Seconds up to which a time axis shows hours rather than days."""


def report_page(report: Report, language: Language) -> str:
    """The page; `language` is what it shows first, a button switches to the other."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(_PACKAGE, ""),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": shown.count,
        "percent": shown.percent,
        "seconds": shown.seconds,
        "amounts": shown.amounts,
        "moment": shown.moment,
    }
    return environment.get_template("page.html.jinja").render(
        report=report,
        language=language.value,
        style=Markup(_text("page.css")),
        script=Markup(_text("page.js")),
        percentiles=PERCENTILES,
        t=both,
        dimension=lambda one: _both(dimension_name(one, lang) for lang in Language),
        by=lambda one: _both(word("groups", lang, dimension=dimension_name(one, lang)) for lang in Language),
        width=shown.width(report.timeline.width) if report.timeline is not None else "",
        cause=lambda one: _both(cause_name(one, lang) for lang in Language),
        note=lambda one: _both(note_told(one, lang) for lang in Language),
        pattern=lambda one: _both(
            pattern_told(one.pattern, lang, one.at, one.changes, one.every) for lang in Language
        ),
        either=lambda en, zh: _both((en or "", zh or "")),
        plots=_plots(report),
    )


def both(key: str, **values: Any) -> Markup:
    """A text of the report in both languages, of which the page shows one."""
    return _both(word(key, language, **values) for language in Language)


def _both(texts: Any) -> Markup:
    english, chinese = texts
    if english == chinese:
        return Markup("{}").format(english)
    return Markup('<span class="en" lang="en">{}</span><span class="zh" lang="zh-CN">{}</span>').format(
        english, chinese
    )


def _text(name: str) -> str:
    return (resources.files(_PACKAGE) / name).read_text(encoding="utf-8")


def _plots(report: Report) -> dict[str, Markup | str]:
    return {
        "gap": "" if report.gap is None else _gap(report.gap),
        "latency": _latency(report.latency),
        "timeline": "" if report.timeline is None else _timeline(report.timeline),
    }


def _gap(gap: Gap) -> Markup:
    """All prompt tokens as one bar: read, lost by cause, and those that no cache could have had."""
    parts = [(f"{word('actual', Language.EN)}: {shown.percent(gap.actual)}", gap.actual, "read")]
    for number, loss in enumerate(gap.losses):
        share = loss.tokens / gap.prompt
        told = f"{cause_name(loss.cause, Language.EN)}: {shown.percent(share)}"
        parts.append((told, share, f"cause-{number % 6}"))
    return share_bar(word("three", Language.EN), parts)


def _latency(latency: Latency) -> Markup | str:
    if not latency.curves:
        return ""
    lines = [
        Line(
            both(name),
            tuple(zip(map(float, latency.at), latency.curves[name], strict=True)),
            name,
            [f"p{at}: {shown.seconds(v)}" for at, v in zip(latency.at, latency.curves[name], strict=True)],
        )
        for name in ("hit", "miss")
        if name in latency.curves
    ]
    values = [value for line in lines for _, value in line.points if value is not None and value > 0]
    if not values:
        return ""
    x = Axis(
        latency.at[0], latency.at[-1], [(at, f"p{at}") for at in latency.at if at in (1, 10, 50, 90, 99)]
    )
    return line_plot(word("latency", Language.EN), lines, x, log_axis(values, shown.seconds))


def _timeline(timeline: Timeline) -> Markup | str:
    times = [float(sums.key) for sums in timeline.spans]
    form = "%H:%M" if times[-1] - times[0] < _MINUTES else "%m-%d"
    names = [shown.moment(at) for at in times]
    rates = Line(
        both("hit_rate"),
        [(at, sums.hit_rate) for at, sums in zip(times, timeline.spans, strict=True)],
        "read",
        [f"{name}: {shown.percent(s.hit_rate)}" for name, s in zip(names, timeline.spans, strict=True)],
    )
    calls = Line(
        both("calls"),
        [(at, float(sums.requests)) for at, sums in zip(times, timeline.spans, strict=True)],
        "calls",
        [f"{name}: {shown.count(s.requests)}" for name, s in zip(names, timeline.spans, strict=True)],
    )
    axis = time_axis(times[0], times[-1], lambda at: f"{datetime.fromtimestamp(at, UTC):{form}}")
    return line_plot(word("timeline", Language.EN), [rates], axis, share_axis(), calls)
