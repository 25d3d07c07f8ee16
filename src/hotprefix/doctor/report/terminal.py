"""A report in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from hotprefix.doctor.report import shown
from hotprefix.doctor.report.figures import (
    PERCENTILES,
    Dimension,
    Gap,
    Latency,
    Offender,
    Report,
    Sessions,
    Spread,
    Sums,
    Timeline,
)
from hotprefix.doctor.report.wording import (
    Language,
    cause_name,
    dimension_name,
    note_told,
    pattern_told,
    word,
)

_BAR = 16
_SPARKS = "▁▂▃▄▅▆▇█"
_NARROW = 110
_LABEL = 14


class TerminalReport:
    """Shows a report in one language on one console."""

    def __init__(self, out: Console, language: Language) -> None:
        self._out = out
        self._language = language

    def show(self, report: Report) -> None:
        """Print all of it."""
        self._head(report)
        self._print("three", [self._gap(report.gap)])
        self._print("latency", [self._latency(report.latency)])
        if report.timeline is not None:
            self._print("timeline", [self._timeline(report.timeline)])
        for dimension, groups in report.groups.items():
            self._group(dimension, groups, report.hidden.get(dimension, 0))
        if report.offenders:
            self._print("offenders", [self._offenders(report.offenders)])
        if report.sessions is not None:
            self._print("sessions", [self._sessions(report.sessions)])
        self._notes(report)

    def _word(self, key: str, **values: object) -> str:
        return word(key, self._language, **values)

    def _print(self, title: str, parts: Sequence[RenderableType]) -> None:
        self._out.print(Text(f"\n{self._word(title)}", style="bold"))
        for part in parts:
            self._out.print(part)

    def _head(self, report: Report) -> None:
        total = report.total
        self._out.print(Text(self._word("title"), style="bold"))
        if report.since is not None and report.until is not None:
            times = self._word(
                "from_until", since=shown.moment(report.since), until=shown.moment(report.until)
            )
        else:
            times = self._word("no_times")
        self._out.print(Text(times, style="dim"))
        table = Table.grid(padding=(0, 2))
        for name, value in self._overview(total):
            table.add_row(Text(name, style="dim"), value)
        self._out.print(table)

    def _overview(self, total: Sums) -> list[tuple[str, RenderableType]]:
        told = self._word("reported_by", part=shown.count(total.measured), whole=shown.count(total.requests))
        rate = Text(shown.percent(total.hit_rate), style="bold")
        if total.measured < total.requests:
            rate.append(f"  {told}", style="dim")
        tokens = "  ".join(
            f"{self._word(name).lower()} {shown.count(value)}"
            for name, value in (
                ("read", total.read),
                ("computed", total.computed),
                ("written", total.written),
                ("output", total.output),
            )
        )
        return [
            (self._word("calls"), Text(shown.count(total.requests))),
            (self._word("hit_rate_tokens"), rate),
            (self._word("request_hit_rate"), Text(shown.percent(total.request_hit_rate))),
            (self._word("prompt"), Text(f"{shown.count(total.prompt)}  ({tokens})")),
            (self._word("spent"), Text(shown.amounts(total.money))),
            (self._word("avoidable"), Text(shown.amounts(total.avoidable_money), style="yellow")),
        ]

    def _gap(self, gap: Gap | None) -> RenderableType:
        if gap is None:
            return Text(self._word("no_gap"), style="dim")
        about = self._word(
            "three_about",
            prompt=shown.count(gap.prompt),
            coverage=shown.percent(gap.coverage),
            ceiling=shown.percent(gap.ceiling),
            actual=shown.percent(gap.actual),
        )
        bars = Table.grid(padding=(0, 2))
        for key, value in (("ceiling", gap.ceiling), ("actual", gap.actual)):
            bars.add_row(self._word(key), Text(shown.percent(value)), _bar(value, 2 * _BAR))
        bars.add_row(self._word("gap"), Text(shown.percent(gap.ceiling - gap.actual)), Text(""))
        losses = self._table(("cause", "tokens", "of_gap", "inferred", "avoidable", "money"), first_left=True)
        for loss in gap.losses:
            losses.add_row(
                cause_name(loss.cause, self._language),
                shown.count(loss.tokens),
                shown.percent(loss.tokens / gap.lost),
                shown.percent(loss.inferred / loss.tokens),
                shown.count(loss.avoidable),
                shown.amounts(loss.money),
            )
        return Group(Text(about, style="dim"), bars, *([losses] if gap.losses else []))

    def _latency(self, latency: Latency) -> RenderableType:
        rows = [
            (self._word("hit"), latency.hit),
            (self._word("miss"), latency.miss),
            *((f"{self._word('read').lower()} {name}", spread) for name, spread in latency.shares),
        ]
        known = [(name, spread) for name, spread in rows if spread is not None]
        if not known:
            return Text(self._word("no_latency"), style="dim")
        table = self._table(("", "calls", "mean"), first_left=True)
        for percentile in PERCENTILES:
            table.add_column(f"p{percentile}", justify="right")
        table.add_column("p50")
        most = max(spread.percentiles[50] for _, spread in known)
        for name, spread in known:
            table.add_row(
                name, *self._times(spread), _bar(spread.percentiles[50] / most if most else 0, _BAR)
            )
        return Group(Text(self._word("latency_about"), style="dim"), table)

    def _times(self, spread: Spread) -> list[str]:
        values = (spread.mean, *spread.percentiles.values())
        return [shown.count(spread.count), *(shown.seconds(value) for value in values)]

    def _timeline(self, timeline: Timeline) -> RenderableType:
        rates = [sums.hit_rate for sums in timeline.spans]
        calls = [float(sums.requests) for sums in timeline.spans]
        table = Table.grid(padding=(0, 2))
        table.add_row(self._word("hit_rate"), Text(sparks(rates, 1.0), style="green"), _ends(rates))
        table.add_row(self._word("calls"), Text(sparks(calls), style="blue"), Text(""))
        about = self._word("timeline_about", width=shown.width(timeline.width))
        return Group(Text(about, style="dim"), table)

    def _group(self, dimension: Dimension, groups: Sequence[Sums], hidden: int) -> None:
        names = ["calls", "prompt", "read", "computed", "output", "hit_rate", "", "first_token_p50", "lost"]
        if self._out.width < _NARROW:
            names = ["calls", "prompt", "read", "hit_rate", ""]
        name = dimension_name(dimension, self._language)
        table = self._table((name, *names, "money", "avoidable"), first_left=True, named=True)
        for sums in groups:
            cells: dict[str, RenderableType] = {
                "calls": shown.count(sums.requests),
                "prompt": shown.count(sums.prompt),
                "read": shown.count(sums.read),
                "computed": shown.count(sums.computed),
                "output": shown.count(sums.output),
                "hit_rate": shown.percent(sums.hit_rate),
                "": _bar(sums.hit_rate or 0.0, _BAR),
                "first_token_p50": shown.seconds(
                    sums.first_token.percentiles[50] if sums.first_token else None
                ),
                "lost": shown.count(sums.lost),
            }
            label = Text(shown.printable(sums.key) or self._word("not_told"), overflow="ellipsis")
            money = (shown.amounts(sums.money), shown.amounts(sums.avoidable_money))
            table.add_row(label, *(cells[key] for key in names), *money)
        self._out.print(Text(f"\n{self._word('groups', dimension=name)}", style="bold"))
        self._out.print(table)
        if hidden:
            self._out.print(Text(self._word("hidden", count=hidden), style="dim"))

    def _offenders(self, offenders: Sequence[Offender]) -> RenderableType:
        is_judged = offenders[0].reason is not None
        parts: list[RenderableType] = [
            Text(self._word("offenders_lost" if is_judged else "offenders_computed"), style="dim")
        ]
        for number, one in enumerate(offenders, start=1):
            head = Text(f"{number:>2}. ")
            head.append(shown.printable(one.label) or self._word("not_told"), style="bold")
            facts = [
                f"{shown.count(one.tokens)} {self._word('token_unit')}",
                f"{self._word('calls')} {shown.count(one.requests)}",
            ]
            facts += [shown.amounts(one.money)] if one.money else []
            facts += [f"{one.reason}{f' ({one.detail})' if one.detail else ''}"] if one.reason else []
            parts += [head, Padding(Text(shown.printable(" · ".join(facts)), style="yellow"), (0, 0, 0, 4))]
            advice = one.advice_en if self._language is Language.EN else one.advice_zh
            if advice:
                parts.append(Padding(Text(shown.printable(advice), style="dim"), (0, 0, 0, 4)))
        return Group(*parts)

    def _sessions(self, sessions: Sessions) -> RenderableType:
        about = Text(self._word("sessions_about", count=shown.count(sessions.count)), style="dim")
        if not sessions.findings:
            return Group(about, Text(self._word("no_findings"), style="dim"))
        table = self._table(("session", "finding", "turns", "lost"), first_left=True)
        for one in sessions.findings:
            told = pattern_told(one.pattern, self._language, one.at, one.changes, one.every)
            lost = self._word("estimated", count=shown.count(one.lost))
            table.add_row(
                Text(shown.printable(one.session), overflow="ellipsis"), told, shown.count(one.turns), lost
            )
        return Group(about, table)

    def _notes(self, report: Report) -> None:
        self._out.print(Text(f"\n{self._word('notes')}", style="bold"))
        lines = [self._word("formula")]
        if report.compared.held:
            done, held = (shown.count(value) for value in (report.compared.done, report.compared.held))
            lines.append(self._word("compared", done=done, held=held))
        lines += [note_told(note, self._language) for note in report.notes]
        for line in lines:
            self._out.print(Text(f"· {shown.printable(line)}", style="dim"))

    def _table(self, names: Sequence[str], *, first_left: bool, named: bool = False) -> Table:
        """Columns to the right; `named`: the first one has its own name already."""
        table = Table(header_style="bold")
        for place, name in enumerate(names):
            heading = name if not name or (named and place == 0) else self._word(name)
            is_left = (first_left and place == 0) or name in ("finding", "")
            table.add_column(
                heading,
                justify="left" if is_left else "right",
                no_wrap=not is_left,
                min_width=_LABEL if place == 0 else None,
            )
        return table


def sparks(values: Sequence[float | None], most: float | None = None) -> str:
    """A line of bars of eight heights; a blank where a value is not known."""
    top = most or max((value for value in values if value is not None), default=0.0)
    steps = len(_SPARKS) - 1
    return "".join(
        " " if value is None else _SPARKS[round(min(1.0, value / top) * steps) if top else 0]
        for value in values
    )


def _bar(share: float, width: int) -> ProgressBar:
    return ProgressBar(total=1.0, completed=min(1.0, max(0.0, share)), width=width, style="grey37")


def _ends(rates: Sequence[float | None]) -> Text:
    known = [rate for rate in rates if rate is not None]
    if not known:
        return Text(shown.DASH)
    return Text(f"{shown.percent(known[0])} → {shown.percent(known[-1])}", style="dim")
