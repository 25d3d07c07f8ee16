"""A plan in the terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hotprefix.app.sizes import show_size
from hotprefix.tune.candidate import Candidate
from hotprefix.tune.machine import Disk, Machine, Redis
from hotprefix.tune.planner import Plan


def show_plan(plan: Plan, out: Console) -> None:
    """The machine, the candidates, the options and what they can't give."""
    for line in machine_lines(plan.facts.machine):
        out.print(line, highlight=False, markup=False)
    out.print()
    out.print(_candidates(plan))
    out.print(_decisions(plan))
    for warning in plan.warnings:
        out.print(f"[yellow]Note:[/] {escape(warning)}", highlight=False)


def machine_lines(machine: Machine) -> list[str]:
    """What was found, a line each; also the heading of the config."""
    memory, cores, processor = machine.memory, machine.cores, machine.processor
    bandwidth = "" if machine.bandwidth is None else f", copied at {_rate(machine.bandwidth)}"
    lines = [
        f"{processor.name}: {cores.usable} of {cores.present} cores (by {cores.bounded_by}), computes in "
        f"{processor.computes_in}",
        f"Memory: {show_size(memory.total)} (by {memory.bounded_by}), {show_size(memory.available)} available"
        + bandwidth,
        f"Disk: {_disk(machine.disk)}",
    ]
    if machine.redis is not None:
        lines.append(f"Redis: {_redis(machine.redis)}")
    return lines


def _disk(disk: Disk) -> str:
    text = f"{show_size(disk.free)} free in {disk.folder}"
    if disk.write is None or disk.read is None:
        return f"{text}, speed not measured"
    return f"{text}, written at {_rate(disk.write)}, read at {_rate(disk.read)}"


def _redis(redis: Redis) -> str:
    room = "no limit told" if redis.room is None else f"{show_size(redis.room)} for all its users"
    if redis.write is None or redis.read is None:
        return f"{redis.url}, {room}"
    return f"{redis.url}, {room}, written at {_rate(redis.write)}, read at {_rate(redis.read)}"


def _rate(rate: float) -> str:
    return f"{rate / 1e9:.2f} GB/s"


def _candidates(plan: Plan) -> Table:
    need = plan.need
    table = Table(
        title=f"{plan.facts.model.name} for {plan.wish.goal.value}: {need.concurrency} requests of "
        f"{need.context:,} tokens, {show_size(plan.budget.kv)} for keys and values",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    columns = [column for column in _COLUMNS if any(column.show(one) for one in plan.candidates)]
    for column in columns:
        table.add_column(column.name, justify=column.justify, no_wrap=column.name != "quality")
    for one in plan.candidates:
        cells = [column.show(one) or "–" for column in columns]
        table.add_row(*cells, style="bold green" if one is plan.chosen else None)
    speeds = plan.facts.speeds
    if speeds.by_precision:
        table.caption = (
            f"prefill, decode: tokens/s at {speeds.prompt:,} tokens; request: {need.prompt:,} computed, "
            f"{need.answer:,} drawn at these speeds, alone, nothing cached"
        )
        if need.prompt > speeds.prompt:
            table.caption += " (longer prompts go slower)"
        table.caption_justify = "left"
    return table


@dataclass(frozen=True, slots=True)
class _Column:
    """`show` gives nothing where nothing is known; a column without anything is left out."""

    name: str
    show: Callable[[Candidate], str]
    justify: Literal["left", "right"] = "right"


_COLUMNS = (
    _Column("precision", lambda one: one.precision, justify="left"),
    _Column("B/token", lambda one: f"{one.bytes_per_token:,.0f}"),
    _Column("tokens", lambda one: f"{one.tokens:,}"),
    _Column("at once", lambda one: f"{one.at_once:,}"),
    _Column("prefill", lambda one: _number(one.prefill, 0)),
    _Column("decode", lambda one: _number(one.decode, 1)),
    _Column("request", lambda one: _number(one.seconds, 1, " s")),
    _Column("reuse", lambda one: "token" if one.exact else "block", justify="left"),
    _Column("quality", lambda one: one.quality, justify="left"),
)


def _number(value: float | None, digits: int, unit: str = "") -> str:
    return "" if value is None else f"{value:,.{digits}f}{unit}"


def _decisions(plan: Plan) -> Table:
    table = Table(title="Options", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("option", "value", "by", "why"):
        table.add_column(heading, overflow="fold")
    for decision in plan.decisions:
        table.add_row(f"--{decision.key}", str(decision.value), decision.basis.value, escape(decision.why))
    return table
