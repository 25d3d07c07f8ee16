"""Quality cards as `hotprefix quality` writes them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hotprefix.base.errors import HotprefixError
from hotprefix.quality.card import Card, Group, Line
from hotprefix.quality.metrics import Shift
from hotprefix.quality.summary import summarise
from hotprefix.tune.quality_notes import Note, read_card


def card(*lines: tuple[str, Group, float]) -> Card:
    """A card with lines of these divergences; a tenth of predictions differ, perplexity is unchanged."""
    agrees = np.array([True] * 9 + [False])
    found = []
    for name, group, divergence in lines:
        shift = Shift(np.full(10, divergence), agrees, np.ones(10), np.ones(10))
        found.append(Line(name, group, summarise([shift])))
    return Card("small", "$", "here", "today", "", 23_040, tuple(found))


def test_a_card(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    whole = card(("int8", Group.CODEC, 0.0005), ("u8", Group.PRECISION, 0.02), ("mixed", Group.STRATEGY, 0.1))
    path.write_text(json.dumps(whole.to_json()))
    notes = read_card(path)
    assert notes.model == "small"
    int8, u8 = notes.codec("int8"), notes.precision("u8")
    assert int8 is not None
    assert u8 is not None
    assert str(int8) == "KL 5.0e-04, same top 90.0%, perplexity +0.00%"
    assert (int8.is_good, u8.is_good) == (True, False)
    # A strategy called mixed says nothing of the codec of that name.
    assert notes.codec("mixed") is None
    assert notes.precision("int8") is None


@pytest.mark.parametrize(
    "text",
    ["{}", "[1]", "nonsense", '{"model": "m", "lines": [{}]}', '{"model": "m", "lines": 1}',
     '{"model": "m", "lines": [{"name": "x", "group": "none", "summary": {}}]}'],
)  # fmt: skip
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(text)
    with pytest.raises(HotprefixError, match="quality card"):
        read_card(path)
    with pytest.raises(HotprefixError, match="can't be read"):
        read_card(tmp_path)


@pytest.mark.parametrize(
    ("note", "good"), [(Note(0.01), True), (Note(0.011), False), (Note(0.001, 1.0, 1.02), False)]
)
def test_what_is_vouched_for(note: Note, good: bool) -> None:
    assert note.is_good is good
