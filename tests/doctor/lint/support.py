"""Files to lint, and what is found in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.fixing import fixed
from hotprefix.doctor.lint.measure import RulerBook
from hotprefix.doctor.lint.run import FileReport, Linter
from hotprefix.doctor.lint.settings import AUTO, make_settings
from hotprefix.doctor.lint.vendors import Vendors
from hotprefix.doctor.text_model import TextModel
from hotprefix.profiles.loader import load_profiles

Body = dict[str, Any]
MARKER = {"type": "ephemeral"}
RULES = "\n".join(
    f"Rule {n}. Pallets of kind {n * 7} are weighed at gate {n % 9 + 1}, photographed, and stored in hall "
    f"{n * 13 % 40}."
    for n in range(80)
)
"""About two thousand tokens that never change."""


def linter(model: TextModel | None = None, **settings: Any) -> Linter:
    made = make_settings({}, settings)
    book = load_profiles()
    forced = (
        None if made.profile == AUTO else book.get("dashscope-2026-03" if made.is_checklist else made.profile)
    )
    return Linter(
        made, Vendors(book, forced, made.explicit_models), RulerBook(model or TextModel(), lambda _: None)
    )


def write(folder: Path, documents: Sequence[Body], name: str = "requests.jsonl") -> Path:
    path = folder / name
    path.write_text(
        "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in documents), encoding="utf-8"
    )
    return path


def report_on(folder: Path, *documents: Body, model: TextModel | None = None, **settings: Any) -> FileReport:
    return linter(model, **settings).check_file(write(folder, documents))


def found_in(
    folder: Path, *documents: Body, model: TextModel | None = None, **settings: Any
) -> list[LintFinding]:
    return report_on(folder, *documents, model=model, **settings).findings


def only(findings: Sequence[LintFinding], rule: str) -> LintFinding:
    """The one finding of a rule."""
    found = [finding for finding in findings if finding.rule.id == rule]
    assert len(found) == 1, [(one.rule.id, str(one.place)) for one in findings]
    return found[0]


def ids(findings: Sequence[LintFinding]) -> list[str]:
    return sorted({finding.rule.id for finding in findings})


def code(folder: Path, source: str, name: str = "app.py", **settings: Any) -> list[LintFinding]:
    path = folder / name
    path.write_text(source, encoding="utf-8")
    return linter(**settings).check_file(path).findings


def fix_all(path: Path, **settings: Any) -> str:
    """The file as --fix leaves it."""
    check = linter(**settings)
    made = fixed(path, lambda copy: check.check_file(copy, known_as=path).findings)
    return made.after if made is not None else path.read_bytes().decode()


def chat(system: Any, *turns: Any, **more: Any) -> Body:
    """A system prompt, then user and assistant in turn."""
    roles = ("user", "assistant")
    talk = [{"role": roles[at % 2], "content": turn} for at, turn in enumerate(turns)]
    return {"model": "qwen-plus", "messages": [{"role": "system", "content": system}, *talk], **more}


def part(text: str, *, marked: bool = False) -> Body:
    return {"type": "text", "text": text} | ({"cache_control": MARKER} if marked else {})


def tool(name: str, **properties: str) -> Body:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
    }
    function = {
        "name": name,
        "description": f"Works on {name} of the warehouse and tells how it went.",
        "parameters": schema,
    }
    return {"type": "function", "function": function}
