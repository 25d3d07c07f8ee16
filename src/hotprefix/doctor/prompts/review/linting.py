"""The linter's findings on a prompt's text: what in it would change from request to request."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hotprefix.doctor.lint.finding import LintFinding
from hotprefix.doctor.lint.measure import RulerBook
from hotprefix.doctor.lint.rule import Language
from hotprefix.doctor.lint.run import Linter
from hotprefix.doctor.lint.settings import LintSettings
from hotprefix.doctor.lint.vendors import Vendors
from hotprefix.doctor.prompts.prompt import Prompt
from hotprefix.doctor.prompts.registry import PromptText
from hotprefix.doctor.text_model import TextModel
from hotprefix.profiles.loader import ProfileBook

_VOLATILE = ("HP1",)
_MODEL = "qwen-plus"

Lint = Callable[[Prompt, PromptText], Iterator[str]]
"""Sentences about a text; none if nothing is found."""


class PromptLint:
    """Checks a text as the system message of a request; Jinja templates as such."""

    def __init__(self, book: ProfileBook) -> None:
        self._linter = Linter(
            LintSettings(select=_VOLATILE), Vendors(book), RulerBook(TextModel(), lambda _: None)
        )

    def __call__(self, prompt: Prompt, text: PromptText) -> Iterator[str]:
        file = text.version.file
        if file.suffix == ".jinja":
            yield from map(_told, self._linter.check_file(file).findings)
            return
        with tempfile.TemporaryDirectory(prefix="hotprefix-prompts-") as folder:
            request = Path(folder) / "request.json"
            request.write_text(json.dumps(_request(prompt, text)), encoding="utf-8")
            yield from map(_told, self._linter.check_file(request).findings)


def _told(finding: LintFinding) -> str:
    return f"{finding.rule.id} {finding.message(Language.ENGLISH)}"


def _request(prompt: Prompt, text: PromptText) -> dict[str, Any]:
    model = prompt.model or _MODEL
    user = {"role": "user", "content": "?"}
    if text.version.file.suffix == ".json":
        try:
            content = json.loads(text.data)
        except ValueError:
            content = None
        if isinstance(content, dict) and "messages" in content:
            return {"model": model, **content}
        if isinstance(content, list) and all(isinstance(one, dict) and "role" in one for one in content):
            return {"model": model, "messages": [*content, user]}
    return {"model": model, "messages": [{"role": "system", "content": text.text}, user]}
