"""Explanations for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hotprefix.diagnosis.reason import MissReport, Reason
from hotprefix.doctor.explain.difference import Difference, Part, Piece, visible
from hotprefix.doctor.explain.log import Cause, LogExplanation, Sum
from hotprefix.doctor.explain.pair import Pair
from hotprefix.doctor.explain.stages import Stage, StageName
from hotprefix.doctor.explain.trial import Judged
from hotprefix.modes.classes import Mode

_STYLES = {Part.SAME: "dim", Part.GONE: "bold red", Part.NEW: "bold green"}
_UNITS = {
    StageName.BYTES: "bytes",
    StageName.TOOLS: "tools",
    StageName.BLOCKS: "blocks",
    StageName.TEMPLATE: "characters",
    StageName.TOKENS: "tokens",
}


def show_pair(pair: Pair, out: Console) -> None:
    """Stages as a table, the first difference of each in colour, then the verdict."""
    out.print(_stages(pair.stages))
    for stage in pair.stages:
        if stage.difference is not None:
            title = f"{stage.name}: {_place(stage.difference, stage.name)}"
            out.print(Panel(_two(stage.difference), title=escape(title), title_align="left", padding=(0, 1)))
    out.print(Panel(verdict(pair), title="cache", title_align="left", padding=(0, 1)))
    _show_notes(pair.notes, out)


def show_log(log: LogExplanation, out: Console, worst: int) -> None:
    """Totals, a table by reason, and the worst causes."""
    out.print(Group(*_totals(log)))
    table = Table("Reason", title="By reason", header_style="bold", title_justify="left")
    for heading in ("requests", "lost tokens", "lost money"):
        table.add_column(heading, justify="right", no_wrap=True)
    for reason, found in sorted(log.reasons.items(), key=lambda item: (-item[1].lost, -item[1].requests)):
        table.add_row(str(reason), f"{found.requests:,}", f"{found.lost:,}", money_text(found))
    out.print(table)
    for number, cause in enumerate(log.worst(worst), start=1):
        out.print(_cause(number, cause))
    for complaint in log.complaints:
        out.print(Text(f"Left out: {complaint}", style="yellow"))
    _show_notes(log.notes, out)


def verdict(pair: Pair) -> RenderableType:
    """What the cache makes of the later request."""
    judged, reach = pair.new, pair.reach
    lines: list[RenderableType] = [_rules(pair)]
    if pair.is_behind_marker:
        lines.append(Text(f"The requests part behind the last marker ({reach.marker_path}): no break."))
    if judged.reported is not None:
        read = "not told" if judged.reported.read is None else f"{judged.reported.read:,}"
        total = "?" if judged.reported.prompt is None else f"{judged.reported.prompt:,}"
        lines.append(Text(f"Reported: {read} of {total} prompt tokens read."))
    lines += _report_lines(judged.report, judged)
    if judged.expected.reason is not judged.report.reason:
        by_rules = judged.expected
        lines.append(
            Text(f"By the rules alone: {by_rules.reason}, {by_rules.matched:,} tokens read.", style="dim")
        )
    return Group(*lines)


def reason_text(report: MissReport) -> str:
    """The reason with its detail."""
    return f"{report.reason} ({report.detail})" if report.detail else str(report.reason)


def money_text(found: Sum) -> str:
    """Amounts in their currencies."""
    return ", ".join(f"{amount:,.6f} {currency}" for currency, amount in found.money.items()) or "–"


def coloured(pieces: Sequence[Piece]) -> Text:
    """Pieces of text by what they are."""
    text = Text(overflow="fold")
    for piece in pieces:
        text.append(piece.text, style=_STYLES[piece.part])
    return text


def _stages(stages: Sequence[Stage]) -> Table:
    table = Table("Stage", header_style="bold")
    table.add_column("same", justify="right", no_wrap=True)
    table.add_column("of", justify="right", no_wrap=True)
    table.add_column("")
    table.add_column("where they part", overflow="fold")
    for stage in stages:
        old, new = stage.sizes
        sizes = f"{new:,}" if old == new else f"{old:,} → {new:,}"
        table.add_row(
            str(stage.name), f"{stage.shared:,}", f"{sizes} {_UNITS[stage.name]}", _sign(stage), _where(stage)
        )
    return table


def _sign(stage: Stage) -> Text:
    if stage.is_equal:
        return Text("equal", style="green")
    return Text("continued", style="green") if stage.is_continued else Text("differ", style="red")


def _where(stage: Stage) -> Text:
    found = stage.difference
    if found is None:
        return Text("" if stage.is_equal else stage.note)
    return Text(f"{found.path or 'at the top'}" + (f" · {stage.note}" if stage.note else ""))


def _place(found: Difference, name: StageName) -> str:
    unit = "byte" if name is StageName.BYTES else "character"
    return f"{found.path or 'body'}, {unit} {found.at:,}"


def _two(found: Difference) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text("−", style="red"), coloured(found.before))
    grid.add_row(Text("+", style="green"), coloured(found.after))
    return grid


def _rules(pair: Pair) -> Text:
    reach, judged = pair.reach, pair.new
    told = [f"{judged.rendered.profile.name}, {reach.mode}"]
    if reach.mode is not Mode.NONE:
        told.append(f"at least {reach.minimum:,} tokens")
    if reach.quantum > 1:
        told.append(f"in steps of {reach.quantum}")
    if reach.marker is not None:
        told.append(f"up to token {reach.marker:,}")
    if reach.lookback is not None:
        told.append(f"looking back {reach.lookback} blocks")
    return Text(", ".join(told), style="dim")


def _report_lines(report: MissReport, judged: Judged) -> Iterator[RenderableType]:
    is_fine = report.reason is Reason.NONE or not report.avoidable
    yield Text(reason_text(report), style="bold green" if is_fine else "bold red")
    lost = f"Read {report.matched:,} of {report.ideal:,} tokens that could be; lost {report.lost_tokens:,}"
    if report.lost_money:
        lost += f", {report.lost_money:.6f} {judged.currency}"
    kind = "avoidable" if report.avoidable else "not avoidable"
    yield Text(f"{lost} ({kind}; {report.evidence}).")
    if report.divergence is not None:
        yield Text(f"At {report.divergence.path}, token {report.divergence.token:,}.")
    yield Text(report.advice_en)
    yield Text(report.advice_zh)


def _totals(log: LogExplanation) -> Iterator[Text]:
    share = f"{log.expected / log.tokens:.1%}" if log.tokens else "–"
    yield Text(
        f"{log.requests:,} requests, {log.sessions:,} sessions, {log.tokens:,} prompt tokens; rules: "
        + ", ".join(log.profiles),
        style="bold",
    )
    yield Text(f"By the rules {log.expected:,} tokens would be read ({share}).")
    if log.reported:
        yield Text(f"Reported for {log.reported:,} requests; with them {log.read:,} tokens were read.")
    yield Text(f"Avoidable: {log.avoidable.lost:,} tokens, {money_text(log.avoidable)}.", style="bold")
    if log.unread:
        yield Text(f"{log.unread:,} requests could not be read.", style="yellow")


def _cause(number: int, cause: Cause) -> Panel:
    found = cause.sample.divergence
    lines: list[RenderableType] = [
        Text(f"{cause.sum.requests:,} requests lost {cause.sum.lost:,} tokens, {money_text(cause.sum)}.")
    ]
    against = f" against {cause.earlier}" if cause.earlier is not None else ""
    lines.append(Text(f"For example {cause.place}{against}", style="dim"))
    if found is not None and found.before != found.after:
        grid = Table.grid(padding=(0, 1))
        grid.add_row(Text("−", style="red"), Text(visible(found.before), style="red", overflow="fold"))
        grid.add_row(Text("+", style="green"), Text(visible(found.after), style="green", overflow="fold"))
        lines.append(grid)
    lines += [Text(cause.sample.advice_en), Text(cause.sample.advice_zh)]
    name = f"{cause.reason} ({cause.detail})" if cause.detail else str(cause.reason)
    title = f"{number}. {name} {cause.pattern}".rstrip()
    return Panel(Group(*lines), title=escape(title), title_align="left", padding=(0, 1))


def _show_notes(notes: Sequence[str], out: Console) -> None:
    for note in notes:
        out.print(Text(f"Note: {note}", style="dim"))
