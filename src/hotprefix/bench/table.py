"""Findings in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from hotprefix.bench.findings import Finding
from hotprefix.bench.report import Report
from hotprefix.bench.style import number, verdict

_COLOUR = {True: "green", False: "red", None: "dim"}


def show(report: Report, console: Console) -> None:
    """Print every finding as a table, its targets below it, and where it all comes from."""
    for finding in report.findings:
        console.print(_table(finding))
        for target in finding.targets:
            console.print(f"  {verdict(target)}", style=_COLOUR[target.met], highlight=False)
        for name, value in finding.facts.items():
            console.print(f"  {name}: {value}", style="dim", highlight=False, markup=False)
        console.print()
    console.print(f"$ {report.command}", style="dim", highlight=False, markup=False)
    console.print(report.environment.line(), style="dim", highlight=False, markup=False)


def _table(finding: Finding) -> Table:
    table = Table(title=finding.title, title_justify="left", caption=finding.about, caption_justify="left")
    table.add_column("")
    for heading in ("median", "least", "most", "runs"):
        table.add_column(heading, justify="right")
    for measure in finding.measures:
        values = (measure.middle, min(measure.values), max(measure.values))
        table.add_row(measure.name, *(number(v, measure.unit) for v in values), str(len(measure.values)))
    return table
