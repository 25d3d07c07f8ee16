"""Reports: JSON, self-contained HTML, PNG, table, and the extra they need."""

from __future__ import annotations

import io
import json
import re
import struct
import sys
from pathlib import Path

import pytest
from rich.console import Console

from hotprefix.base.clock import ManualClock
from hotprefix.base.errors import MissingExtra
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series, Target, bars
from hotprefix.bench.report import Report, write_json, write_report
from hotprefix.bench.table import show

COMMAND = "hotprefix bench --only prefix"


def report() -> Report:
    measures = (Measure("fast <&>", "s", (0.1, 0.3, 0.2)), Measure("slow", "s", (2.0,)))
    charts = (
        bars("Bars", measures, "seconds", log_y=True),
        Chart(
            ChartKind.LINES,
            "Lines",
            "turn",
            "s",
            (Series("a", (1.0, 2.0), (1.0, 10.0)), Series("b", (2.0, 1.0), (1.0, 10.0))),
            log_x=True,
        ),
        Chart(
            ChartKind.HISTOGRAM, "Histogram", "%", "n", (Series("q", (1.0, 2.0, 2.0)),), marks=(("m", 1.5),)
        ),
    )
    targets = (
        Target("good", "", 20.0, Bound.AT_LEAST, 15.0),
        Target("bad", "%", 3.0, Bound.AT_MOST, 1.0),
        Target("open", "", None, Bound.AT_MOST, 1.0),
    )
    finding = Finding("kind", "All kinds", "What was done.", measures, targets, charts, {"fact": 7})
    return Report("A report", COMMAND, read_environment(ManualClock(0)), [finding])


def test_json_has_medians_and_verdicts(tmp_path: Path) -> None:
    document = json.loads(write_json(report(), tmp_path / "new", "bench").read_bytes())
    assert document["command"] == COMMAND
    assert document["environment"]["date"] == "1970-01-01 00:00 UTC"
    finding = document["findings"][0]
    assert [measure["median"] for measure in finding["measures"]] == [0.2, 2.0]
    assert [target["met"] for target in finding["targets"]] == [True, False, None]


def test_pictures_and_page(tmp_path: Path) -> None:
    paths = write_report(report(), tmp_path, "bench")
    assert [path.name for path in paths] == ["bench.json", "bench.html", "bench-kind.png"]
    page = paths[1].read_text(encoding="utf-8")
    assert page.count("Plotly.newPlot") >= 3
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page), "the page must need nothing else"
    assert page.count(f"$ {COMMAND}") == 4
    assert page.count("1970-01-01 00:00 UTC") == 4
    assert "fast &lt;&amp;&gt;" in page
    assert "✗ bad: 3.00 % (at most 1.00 %)" in page
    picture = paths[2].read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 1000
    assert height > 3 * 400


def test_table_shows_everything() -> None:
    out = io.StringIO()
    show(report(), Console(file=out, width=160))
    text = out.getvalue()
    for part in ("All kinds", "200.0 ms", "✓ good", "✗ bad", "– open", "fact: 7", f"$ {COMMAND}"):
        assert part in text


@pytest.mark.parametrize("package", ["matplotlib", "plotly"])
def test_missing_extra_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=r"pip install 'hotprefix\[bench\]'"):
        write_report(report(), tmp_path, "bench")
    assert write_json(report(), tmp_path, "bench").exists()
