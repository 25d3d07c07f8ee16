"""A model goes on from a prefix that something was done to, and from the prefix as it was."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from hotprefix.pages.format import KvFormat
from hotprefix.quality.card import Group, Line, Needles
from hotprefix.quality.metrics import Logits, Shift, compare, joined
from hotprefix.quality.model import CHUNK, MeasuredModel, words_of
from hotprefix.quality.needles import Haystack, Needle
from hotprefix.quality.passage import Buffers, from_words, to_words
from hotprefix.quality.summary import summarise
from hotprefix.quality.texts import Document
from hotprefix.quality.treatment import Blocks, Treatment

Tick = Callable[[], None]


class Reading(NamedTuple):
    """A document read up to `prefix` tokens: its KV in the arena's format and in 16-bit words, and the
    logits behind every token of the rest."""

    document: Document
    prefix: int
    kept: Buffers
    words: Blocks
    reference: Logits

    @property
    def rest(self) -> list[int]:
        """The tokens behind the prefix."""
        return self.document.tokens[self.prefix :]


def shift_of(document: Document, prefix: int, reference: Logits, logits: Logits) -> Shift:
    """Two runs over what follows the prefix of a document; nothing follows its last token."""
    return compare(reference[:-1], logits[:-1], np.array(document.tokens[prefix + 1 :]))


@dataclass(slots=True)
class Tally:
    """What one treatment did to all documents so far."""

    shifts: list[Shift] = field(default_factory=list)
    stored: int = 0
    tokens: int = 0
    found: int = 0
    asked: int = 0

    def line(self, name: str, group: Group, raw_bytes_per_token: float) -> Line:
        """The card's line. Needles are left out where none was asked for."""
        size = self.stored / self.tokens if self.stored else None
        return Line(
            name,
            group,
            summarise(self.shifts),
            size,
            raw_bytes_per_token / size if size else None,
            Needles(self.found, self.asked) if self.asked else None,
        )


class Bench:
    """One model, and what was measured with it."""

    def __init__(self, model: MeasuredModel) -> None:
        self._model = model
        self._words: KvFormat = words_of(model.format, model.facts.word_type)

    def read(self, document: Document, prefix: int) -> Reading:
        """Prefill a document's first tokens and go on from there, in an arena of floats."""
        reference = self.logits(document, prefix)
        kept = self._model.blocks(-(-prefix // self._words.block_size))
        return Reading(document, prefix, kept, to_words(kept, self._model.format, self._words), reference)

    def logits(self, document: Document, prefix: int, *, chunk: int = CHUNK) -> Logits:
        """The same, and nothing kept but the logits behind every token of the rest."""
        self._model.prefill(document.tokens[:prefix], chunk=chunk)
        return np.concatenate([part.copy() for part in self._model.score(document.tokens[prefix:], prefix)])

    def compare(self, reading: Reading) -> Shift:
        """How the model goes on from what lies in the arena now, against the reading."""
        rest, start, shifts = np.array(reading.rest), 0, []
        for part in self._model.score(reading.rest, reading.prefix):
            # Nothing follows the last token: its logits can't be judged.
            end = min(start + len(part), len(rest) - 1)
            others = part[: end - start]
            shifts.append(compare(reading.reference[start:end], others, rest[start + 1 : end + 1]))
            start = end
        return joined(shifts)

    def treat(self, reading: Reading, treatments: Iterable[tuple[Treatment, Tally]], tick: Tick) -> None:
        """Compare every treatment's prefix with the one that was read."""
        for treatment, tally in treatments:
            stored = treatment.apply(reading.words, self._words.block_size, reading.prefix)
            self._model.restore(from_words(stored.blocks, self._model.format, self._words))
            tally.shifts.append(self.compare(reading))
            tally.stored += stored.size
            tally.tokens += reading.prefix
            tick()

    def search(
        self, hay: Haystack, treatments: Sequence[tuple[Treatment, Tally]], tick: Tick
    ) -> list[Needle]:
        """Ask every question that the model answers rightly without treatment again after each; gives these
        questions."""
        self._model.prefill(hay.tokens)
        past = len(hay.tokens)
        kept = self._model.blocks(past // self._words.block_size)
        words = to_words(kept, self._model.format, self._words)
        solved = [one for one in hay.needles if hay.is_found(one, self._model.ask(one.question, past))]
        for treatment, tally in treatments:
            stored = treatment.apply(words, self._words.block_size, past)
            self._model.restore(from_words(stored.blocks, self._model.format, self._words))
            tally.asked += len(solved)
            tally.found += sum(hay.is_found(one, self._model.ask(one.question, past)) for one in solved)
            tick()
        return solved
