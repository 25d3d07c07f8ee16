"""Requests of users whose caches miss, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hotprefix.diagnosis.reason import MissReport
from hotprefix.doctor.explain.pair import Pair, explain_pair
from hotprefix.doctor.explain.trial import Judged, Trial
from hotprefix.doctor.place import Place
from hotprefix.doctor.reading import recorded_of
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rendering import Renderer
from hotprefix.doctor.text_model import TextModel
from hotprefix.profiles.loader import load_profiles

Body = dict[str, Any]
MARK = {"cache_control": {"type": "ephemeral"}}
RULES = "\n".join(f"Rule {n}: goods of kind {n * 7} stand on shelf {n * 13}." for n in range(100))


def recorded(document: Body, line: int = 1) -> Recorded:
    found = recorded_of(document, Place("requests.jsonl", line))
    assert found is not None
    return found


def chat(*texts: str, system: str = RULES, **more: Any) -> Body:
    """A system prompt, and texts of user and assistant in turn."""
    roles = ("user", "assistant")
    talk = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": "qwen-plus", "messages": [{"role": "system", "content": system}, *talk]} | more


def part(text: str, *, marked: bool = False) -> Body:
    return {"type": "text", "text": text} | (MARK if marked else {})


def turns(first: int, last: int) -> list[str]:
    return [
        f"Message {n}: box {n * 3} stands at gate {n * 5}, second row, near the door, by the lamp."
        for n in range(first, last)
    ]


class Court:
    """One file's requests, judged in order."""

    def __init__(self, profile: str | None = None, model: TextModel | None = None) -> None:
        model = model or TextModel()
        self.renderer = Renderer(model, load_profiles(), profile)
        self.trial = Trial(estimates=model.is_estimate, wall=1_790_000_000.0)
        self.line = 0

    def judge(self, document: Body) -> Judged:
        self.line += 1
        return self.trial.judge(self.renderer.render(recorded(document, self.line)))

    def report(self, document: Body) -> MissReport:
        return self.judge(document).report


def pair(first: Body, second: Body, profile: str | None = None, context: int = 60) -> Pair:
    court = Court(profile)
    return explain_pair(court.renderer, court.trial, recorded(first, 1), recorded(second, 2), context)


def write(path: Path, *documents: Body) -> Path:
    path.write_text("".join(json.dumps(document) + "\n" for document in documents), encoding="utf-8")
    return path
