"""Plans in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from hotprefix.doctor.plan.provider.compare import ProviderPlan
from hotprefix.doctor.plan.result import CapacityPlan
from hotprefix.doctor.plan.search import Point
from hotprefix.doctor.plan.words import seconds, size

_BAR = 24


def verdict(plan: CapacityPlan) -> str:
    """The plan in a sentence or two."""
    wish, chosen, refusal = plan.wish, plan.chosen, plan.refusal
    goal = (
        f"{plan.load.qps:g} requests/s with p{100 * wish.share:g} of the time to first token within "
        f"{seconds(wish.target)}"
    )
    if chosen is None:
        assert refusal is not None
        return f"{goal} can't be met. {refusal.why} What can be met: {seconds(refusal.reachable)}."
    assert plan.limit is not None and plan.cost is not None
    count = f"{chosen.replicas} replica{'s' if chosen.replicas > 1 else ''}"
    cost = f"{plan.cost:,.2f} {wish.prices.currency}".rstrip()
    outcome = chosen.outcome
    return (
        f"{goal}: {count} with {size(chosen.memory)} for keys and values each, routing "
        f"{chosen.routing.value}; {cost} an hour. p{100 * wish.share:g} is {seconds(chosen.time)}, "
        f"{outcome.hit_rate:.1%} of the prompt tokens are found, servers are {outcome.busy:.0%} busy. "
        f"What limits it: {plan.limit.value} (beyond the percentile {seconds(plan.wait)} waiting, "
        f"{seconds(plan.work)} computing)."
    )


def show_plan(plan: CapacityPlan, out: Console) -> None:
    """The verdict, every fleet with its time as a bar, and notes."""
    style = "bold red" if plan.chosen is None else "bold green"
    out.print(verdict(plan), style=style, highlight=False, markup=False)
    if plan.points:
        out.print(_table(plan))
    survey = plan.load.survey
    out.print(
        f"{survey.requests:,} requests of the trace; a cache that forgets nothing finds "
        f"{survey.ideal_token_rate:.1%} of their prompt tokens. A prompt token takes "
        f"{seconds(plan.times.prompt.computed)} to compute.",
        style="dim",
        highlight=False,
    )
    for note in plan.notes:
        out.print(f"- {note}", style="dim", highlight=False, markup=False)


def _table(plan: CapacityPlan) -> Table:
    table = Table(header_style="bold")
    table.add_column("memory", justify="right")
    table.add_column("routing")
    for heading in ("replicas", "found", "busy", "cost/h", f"p{100 * plan.wish.share:g}"):
        table.add_column(heading, justify="right")
    table.add_column(f"against {seconds(plan.wish.target)}")
    last: tuple[object, ...] = ()
    for point in plan.points:
        if last and last != (point.memory, point.routing):
            table.add_section()
        last = point.memory, point.routing
        table.add_row(*_cells(plan, point), style=_style(plan, point))
    return table


def _cells(plan: CapacityPlan, point: Point) -> Sequence[str]:
    return (
        size(point.memory),
        point.routing.value,
        f"{point.replicas}",
        f"{point.outcome.hit_rate:.1%}",
        f"{point.outcome.busy:.0%}",
        f"{plan.wish.prices.of(point.replicas, point.memory):,.2f}",
        seconds(point.time) if point.is_stable else "no end",
        _bar(point.time / plan.wish.target if point.is_stable else float("inf")),
    )


def _bar(part: float) -> str:
    """Half of the width is the target."""
    full = _BAR // 2
    length = min(_BAR, max(1, round(full * part))) if part < 100 else _BAR
    return "█" * min(length, full) + "▒" * (length - full) + ("…" if part > _BAR / full else "")


def _style(plan: CapacityPlan, point: Point) -> str:
    if point is plan.chosen:
        return "bold green"
    return "" if point.is_stable and point.time <= plan.wish.target else "dim"


def show_provider(plan: ProviderPlan, out: Console) -> None:
    """Strategies, the cheapest first."""
    best = plan.best
    saved = 1 - best.cost / plan.uncached if plan.uncached else 0
    out.print(
        f"{plan.wish.profile.name}, {plan.wish.model or 'any model'}: cheapest is {best.strategy.name}, "
        f"{best.cost:,.4f} {plan.currency} for the trace, {saved:.1%} less than without a cache.",
        style="bold green",
        highlight=False,
    )
    table = Table(header_style="bold")
    table.add_column("cache")
    for heading in ("cost", "of uncached", "read", "written", "computed", "hit rate"):
        table.add_column(heading, justify="right")
    for one in plan.costs:
        table.add_row(
            one.strategy.name,
            f"{one.cost:,.4f} {plan.currency}",
            f"{one.cost / plan.uncached:.1%}" if plan.uncached else "–",
            f"{one.tokens.read:,}",
            f"{one.tokens.written:,}",
            f"{one.tokens.computed:,}",
            f"{one.hit_rate:.1%}",
            style="bold green" if one is best else "",
        )
    out.print(table)
    for note in plan.notes:
        out.print(f"- {note}", style="dim", highlight=False, markup=False)
