"""A report: findings with the command and the machine they come from, written to a folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from hotprefix.base.errors import MissingExtra
from hotprefix.bench.environment import Environment
from hotprefix.bench.findings import Finding


@dataclass(frozen=True, slots=True)
class Report:
    """`command` is the shell line that repeats the measurement."""

    title: str
    command: str
    environment: Environment
    findings: Sequence[Finding]

    def to_json(self) -> dict[str, Any]:
        """Everything, with medians and verdicts worked out."""
        return {
            "title": self.title,
            "command": self.command,
            "environment": asdict(self.environment),
            "findings": [_finding(finding) for finding in self.findings],
        }


def _finding(finding: Finding) -> dict[str, Any]:
    document = asdict(finding)
    for entry, measure in zip(document["measures"], finding.measures, strict=True):
        entry["median"] = measure.middle
    for entry, target in zip(document["targets"], finding.targets, strict=True):
        entry["met"] = target.met
    return document


def require_plotting() -> None:
    """Raises `MissingExtra` if the plotting libraries are not installed."""
    try:
        import matplotlib  # noqa: F401
        import plotly  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"Plots need the package '{error.name}'. "
            "Install it with: pip install 'hotprefix[bench]' (or leave the plots out with --no-plots)."
        ) from error


def write_report(report: Report, folder: Path, name: str) -> list[Path]:
    """Write `name`.json, `name`.html and one PNG for each finding that has charts.

    Raises `MissingExtra` without the plotting libraries.
    """
    require_plotting()
    from hotprefix.bench.plot_html import write_html
    from hotprefix.bench.plot_png import write_png

    paths = [write_json(report, folder, name)]
    html = folder / f"{name}.html"
    write_html(report, html)
    paths.append(html)
    for finding in report.findings:
        if finding.charts:
            picture = folder / f"{name}-{finding.name}.png"
            write_png(report, finding, picture)
            paths.append(picture)
    return paths


def write_json(report: Report, folder: Path, name: str) -> Path:
    """Write `name`.json, which needs no plotting library."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_bytes(orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2))
    return path
