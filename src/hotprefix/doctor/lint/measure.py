"""Counting tokens: with a model's own tokenizer where there is one here, else by an estimate that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from hotprefix.base.errors import InvalidRequest
from hotprefix.doctor.text_model import TextModel
from hotprefix.prompt.builder import PromptBuilder

_KEPT = 64
"""Texts whose tokens are remembered: each is asked for several times in a row."""

MARGIN = 0.2
"""How far an estimate may be off, as a share."""


class Measure:
    """Counts tokens; `name` of the tokenizer, empty for an estimate."""

    def __init__(self, model: TextModel) -> None:
        self.name = "" if model.is_estimate else model.name or "tokenizer.json"
        self._ids = lru_cache(_KEPT)(model.token_ids)

    def count(self, text: str) -> int:
        """Tokens of `text` by itself."""
        return len(self.ids(text))

    def ids(self, text: str) -> Sequence[int]:
        """Its tokens, or what stands for them."""
        try:
            return self._ids(text)
        except (InvalidRequest, UnicodeEncodeError):  # half of a character
            return self._ids(text.encode("utf-8", "replace").decode())


@dataclass(frozen=True, slots=True)
class Ruler:
    """How prompts of one model are measured. `builder` renders its real chat template, if there is one."""

    measure: Measure
    builder: PromptBuilder | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it counts rather than estimates."""
        return bool(self.measure.name)


def ruler_of(model: TextModel) -> Ruler:
    """The ruler that a model's files give."""
    builder = None
    if model.tokenizer is not None and model.template is not None:
        builder = PromptBuilder(model.tokenizer, model.template)
    return Ruler(Measure(model), builder)


class RulerBook:
    """The ruler of each model: the one `chosen` for all, else that of the prepared model of its name.

    `prepared` opens the prepared model of a name; None if there is none.
    """

    def __init__(self, chosen: TextModel, prepared: Callable[[str], TextModel | None]) -> None:
        self._chosen = ruler_of(chosen)
        self._prepared = prepared
        self._rulers: dict[str, Ruler] = {"": self._chosen}

    def of(self, model: str) -> Ruler:
        """The ruler for a request that names `model`."""
        if self._chosen.is_exact:
            return self._chosen
        if model not in self._rulers:
            found = self._prepared(model)
            self._rulers[model] = ruler_of(found) if found is not None else self._chosen
        return self._rulers[model]
