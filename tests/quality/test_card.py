"""What a card says, and in which forms."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from hotprefix.quality.card import Card, Group, Line, Needles, verdicts_of
from hotprefix.quality.metrics import Shift
from hotprefix.quality.plot import write_html
from hotprefix.quality.summary import summarise
from hotprefix.quality.table import show


def line_of(name: str, kl: float, size: float, *, top: float = 1.0, ppl: float = 1.0) -> Line:
    shift = Shift(np.full(1000, kl), np.arange(1000) < top * 1000, np.full(1000, np.log(ppl)), np.zeros(1000))
    return Line(name, Group.CODEC, summarise([shift]), size, 23040 / size, Needles(7, 8))


GOOD = [
    line_of("int8", 1e-4, 12_000, top=0.995),
    line_of("layered", 9e-5, 13_000),
    line_of("int4", 4e-3, 6_800),
    line_of("uniform", 2e-3, 5_700),
    line_of("mixed", 4e-4, 5_500, ppl=1.001),
]


def failed(lines: list[Line]) -> list[str]:
    return [verdict.name for verdict in verdicts_of(lines, is_judged=True) if verdict.is_met is False]


def test_good_lines_meet_every_target() -> None:
    assert failed(GOOD) == []
    assert len(verdicts_of(GOOD, is_judged=True)) == 9


@pytest.mark.parametrize(
    ("bad", "target"),
    [
        (line_of("int8", 6e-4, 12_000), "int8: mean KL"),
        (line_of("int8", 1e-4, 12_000, top=0.98), "int8: same top"),
        (line_of("int8", 1e-4, 12_300), "int8: at least 1.9"),
        (line_of("layered", 2e-4, 13_000), "layered: KL no worse"),
        (line_of("layered", 1e-5, 13_300), "layered: at least 1.75"),
        (line_of("mixed", 4e-4, 7_700), "mixed: at least 3"),
        (line_of("mixed", 4e-4, 5_500, ppl=1.006), "mixed: perplexity"),
        (line_of("mixed", 3e-3, 5_500), "mixed: better than uniform"),
        (line_of("mixed", 4e-4, 5_800), "mixed: better than uniform"),
    ],
)
def test_every_target_can_be_missed(bad: Line, target: str) -> None:
    lines = [bad if line.name == bad.name else line for line in GOOD]
    assert any(name.startswith(target) for name in failed(lines))


def test_a_quick_run_judges_nothing() -> None:
    assert {verdict.is_met for verdict in verdicts_of(GOOD, is_judged=False)} == {None}
    assert verdicts_of([], is_judged=True) == ()


def card_of(lines: list[Line]) -> Card:
    return Card(
        "some-model", "hotprefix quality", "a machine", "2026-01-02", "2 documents", 23040.0,
        tuple(lines), verdicts_of(lines, is_judged=True), unsolved=3,
    )  # fmt: skip


def test_the_table_shows_groups_verdicts_and_where_it_comes_from() -> None:
    floor = replace(
        GOOD[0], name="last bit", group=Group.FLOOR, bytes_per_token=None, ratio=None, needles=None
    )
    console = Console(file=io.StringIO(), width=200)
    show(card_of([floor, *GOOD]), console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    for expected in (
        "noise floor",
        "storage codec",
        "5,500",
        "4.19 x",
        "7/8",
        "✓ int8",
        "3 needles",
        "a machine",
    ):
        assert expected in text
    assert "as served" not in text


def test_the_page_needs_nothing_else(tmp_path: Path) -> None:
    card = replace(card_of(GOOD), model="<b>bold</b>")
    write_html(card, tmp_path / "card.html")
    page = (tmp_path / "card.html").read_text(encoding="utf-8")
    assert "<b>bold" not in page
    assert "Divergence against size" in page
    assert "mixed: better than uniform" in page
    # The plotting library's own text names an address of icons that no plot of ours uses.
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=.?http", page)


def test_json_holds_everything() -> None:
    card = card_of(GOOD)
    found = json.loads(json.dumps(card.to_json()))
    assert found["lines"][4]["name"] == "mixed"
    assert found["lines"][4]["summary"]["kl_mean"]["value"] == pytest.approx(4e-4)
    assert found["verdicts"][0]["is_met"] is True
    assert card.line("mixed") is card.lines[4]
    assert card.line("mixed", Group.FLOOR) is None
