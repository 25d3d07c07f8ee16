"""How a log is cut into files, and in which order its lines stand, changes nothing."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hotprefix.doctor.report.facts import report_facts
from hotprefix.doctor.report.figures import Report
from tests.doctor.report.logs import chat_answer, report_of, write_lines

RULES = " ".join(f"Rule {number}: pallets of lane {number % 7} are counted twice." for number in range(120))


def entry(number: int, prompt: int, share: float, session: int, *, clock: bool) -> dict[str, Any]:
    """A call of a log with requests; with a clock, its system prompt is another one every time."""
    system = f"It is {number // 60:02}:{number % 60:02}.\n{RULES}" if clock else RULES
    read = None if share < 0.1 else int(prompt * share) // 128 * 128
    return {
        "timestamp": 1_790_000_000 + number * 30,
        "session_id": f"s{session}",
        "tenant": f"t{session % 2}",
        "ttft": round(1.2 - share, 3),
        "request": {
            "model": "gpt-5-mini",
            "messages": [
                {"role": "system", "content": system},
                {"role": "user", "content": f"Question {number}"},
            ],
        },
        "response": chat_answer(number, prompt, read),
    }


@st.composite
def logs(draw: st.DrawFn) -> list[dict[str, Any]]:
    numbers = draw(st.lists(st.integers(0, 400), min_size=2, max_size=12, unique=True))
    return [
        entry(
            number,
            draw(st.integers(1500, 4000)),
            draw(st.floats(0, 0.95)),
            draw(st.integers(0, 2)),
            clock=draw(st.booleans()),
        )
        for number in numbers
    ]


def without_places(report: Report) -> dict[str, Any]:
    bare = replace(report, files=(), notes=tuple(replace(note, place="") for note in report.notes))
    return report_facts(bare)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(entries=logs(), seed=st.integers(0, 2**16), parts=st.integers(1, 3))
def test_cut_and_shuffled(folder: Path, entries: list[dict[str, Any]], seed: int, parts: int) -> None:
    whole = without_places(report_of(write_lines(folder / "whole.jsonl", entries)))
    shuffled = list(entries)
    random.Random(seed).shuffle(shuffled)
    files = [
        write_lines(folder / f"part-{part}.jsonl", chosen)
        for part in range(parts)
        if (chosen := shuffled[part::parts])
    ]
    assert rounded(without_places(report_of(*files))) == rounded(whole)


def rounded(value: Any) -> Any:
    """Means add up in another order, to another last bit."""
    if isinstance(value, float):
        return round(value, 9)
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value


def test_the_same_log_twice_counts_once(tmp_path: Path) -> None:
    log = write_lines(tmp_path / "a.jsonl", [entry(n, 2000, 0.5, 1, clock=True) for n in range(5)])
    again = write_lines(tmp_path / "b.jsonl", [entry(n, 2000, 0.5, 1, clock=True) for n in range(3, 8)])
    report = report_of(log, again)
    assert report.total.requests == 8
    assert [(note.kind, note.count) for note in report.notes if note.kind == "repeated"] == [("repeated", 2)]
