"""What a quality card (`hotprefix quality`) says of precisions and codecs, in a line each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hotprefix.base.errors import HotprefixError
from hotprefix.quality.card import Group

_MOST_KL = 0.01
_MOST_PPL = 1.01
"""Beyond these a form is not trusted unless it is asked for."""


@dataclass(frozen=True, slots=True)
class Note:
    """Mean KL divergence in nats, share of predictions with the same first token, ratio of perplexities."""

    kl_mean: float
    same_top: float = 1.0
    ppl_ratio: float = 1.0

    def __str__(self) -> str:
        return f"KL {self.kl_mean:.1e}, same top {self.same_top:.1%}, perplexity {self.ppl_ratio - 1:+.2%}"

    @property
    def is_good(self) -> bool:
        """Whether answers hardly change."""
        return self.kl_mean <= _MOST_KL and self.ppl_ratio <= _MOST_PPL


@dataclass(frozen=True, slots=True)
class QualityNotes:
    """Notes by what a line is about and its name; empty without a card. `model` is the card's."""

    notes: Mapping[tuple[Group, str], Note] = field(default_factory=dict)
    model: str = ""

    def precision(self, name: str) -> Note | None:
        """What the card says of an arena in this precision."""
        return self.notes.get((Group.PRECISION, name))

    def codec(self, name: str) -> Note | None:
        """What the card says of prefixes kept in this codec."""
        return self.notes.get((Group.CODEC, name))


def read_card(path: Path) -> QualityNotes:
    """A card as `hotprefix quality` writes it in JSON. Raises `HotprefixError`."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        notes = {
            (Group(line["group"]), str(line["name"])): _note(line["summary"]) for line in document["lines"]
        }
        return QualityNotes(notes, str(document["model"]))
    except OSError as error:
        raise HotprefixError(f"{path} can't be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise HotprefixError(
            f"{path} is no quality card: {error!r}. Write one with: hotprefix quality"
        ) from None


def _note(summary: Mapping[str, Any]) -> Note:
    return Note(*(float(summary[key]["value"]) for key in ("kl_mean", "same_top", "ppl_ratio")))
