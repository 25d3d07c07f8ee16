"""`hotprefix quality`: everything that is measured with one model, line by line of the card."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from hotprefix.base.errors import InvalidRequest, UnsupportedModel
from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.codecs.base import BlockCodec
from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.codecs.catalogue import build_codec
from hotprefix.pages.codecs.mixed_preset import MixedSettings, mixed_codec
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary
from hotprefix.prompt.tokenizer import Tokenizer
from hotprefix.quality.calibrate import Progress
from hotprefix.quality.card import Group, Line
from hotprefix.quality.measure import Bench, Tally, shift_of
from hotprefix.quality.metrics import Shift
from hotprefix.quality.model import Arithmetic, MeasuredModel, Setup, words_of
from hotprefix.quality.needles import haystack
from hotprefix.quality.references import References
from hotprefix.quality.sizes import QualitySizes
from hotprefix.quality.summary import summarise
from hotprefix.quality.texts import Library, Part
from hotprefix.quality.treatment import LastBits, Storing, Treatment

_SERVED_CODECS = ("int8", "mixed")
_OTHER_CHUNK = 96
_UNIFORM_MORE = 0.25
"""Bits by which `uniform` is larger than `mixed`: so it is compared at no fewer bytes, whatever the text."""


class Wishes(NamedTuple):
    """What is measured. `calibration` None: `mixed` goes by each block's own numbers."""

    codecs: Sequence[str]
    precisions: Sequence[str]
    is_served: bool
    calibration: Calibration | None
    threads: int | None


class Source(NamedTuple):
    """The model, and the texts that it is measured with."""

    manifest: ModelManifest
    library: Library
    tokenizer: Tokenizer


class QualityRun:
    """Measures one thing after the other; `lines` are there as soon as they are found.

    Raises `ModelError`, and `InvalidRequest` if the texts are too short.
    """

    def __init__(self, source: Source, sizes: QualitySizes, wishes: Wishes) -> None:
        self._source = source
        self._sizes = sizes
        self._wishes = wishes
        self._documents = source.library.documents(Part.MEASURED, sizes.documents, sizes.length)
        self.lines: list[Line] = []
        self.unsolved = 0
        self.raw_bytes_per_token = 0.0

    def run(self, progress: Progress) -> None:
        """Everything that is wished for."""
        self._progress = progress
        with tempfile.TemporaryDirectory(prefix="hotprefix-quality-") as folder:
            references = References(folder)
            self._codecs(references)
            for precision in self._wishes.precisions:
                self._precision(precision, references)
        if self._wishes.is_served:
            self._served()

    def _model(self, setup: Setup) -> MeasuredModel:
        length = max(self._sizes.length, self._sizes.prefix + 64)
        return MeasuredModel(self._source.manifest, setup, length)

    def _codecs(self, references: References) -> None:
        self._progress.begin("Loading the model", 1)
        model = self._model(Setup(Arithmetic.EXACT, threads=self._wishes.threads))
        self._progress.step()
        words = words_of(model.format, model.facts.word_type)
        self.raw_bytes_per_token = words.block_bytes / words.block_size
        treatments: list[Treatment] = [LastBits()]
        treatments += self._storing(self._wishes.codecs, words, model.facts.rotary, Group.CODEC)
        tallies = [(treatment, Tally()) for treatment in treatments]
        chunking: list[Shift] = []
        bench = Bench(model)
        self._progress.begin("Storage codecs", len(self._documents) * len(tallies))
        try:
            for document in self._documents:
                reading = bench.read(document, self._sizes.prefix)
                references.keep(reading.reference)
                again = bench.logits(document, self._sizes.prefix, chunk=_OTHER_CHUNK)
                chunking.append(shift_of(document, self._sizes.prefix, reading.reference, again))
                bench.treat(reading, tallies, self._progress.step)
            self._needles(bench, tallies, words.block_size)
        finally:
            # Also what was found before an interruption.
            if chunking:
                self.lines.append(Line("other chunking", Group.FLOOR, summarise(chunking)))
            self._add(tallies)

    def _add(self, tallies: Sequence[tuple[Treatment, Tally]]) -> None:
        self.lines += [
            tally.line(treatment, self.raw_bytes_per_token) for treatment, tally in tallies if tally.shifts
        ]

    def _needles(self, bench: Bench, tallies: Sequence[tuple[Treatment, Tally]], slots: int) -> None:
        # Questions begin with a block of their own.
        length = self._sizes.prefix // slots * slots
        hays = self._source.library.documents(Part.MEASURED, self._sizes.haystacks, length)
        self._progress.begin("Needles", len(hays) * len(tallies))
        for seed, hay in enumerate(hays):
            stack = haystack(hay.tokens, self._source.tokenizer, length, seed)
            self.unsolved += bench.search(stack, tallies, self._progress.step)

    def _precision(self, precision: str, references: References) -> None:
        self._progress.begin(f"Arena in {precision}", len(self._documents))
        try:
            model = self._model(Setup(Arithmetic.EXACT, precision, self._wishes.threads))
        except UnsupportedModel:
            # Not every processor has every precision, and a model may have too few layers to be cut.
            return
        bench, shifts = Bench(model), []
        for number, document in enumerate(self._documents):
            logits = bench.logits(document, self._sizes.prefix)
            shifts.append(shift_of(document, self._sizes.prefix, references.get(number), logits))
            self._progress.step()
        size = model.format.block_bytes / model.format.block_size
        ratio = self.raw_bytes_per_token / size
        self.lines.append(Line(precision, Group.PRECISION, summarise(shifts), size, ratio))

    def _served(self) -> None:
        self._progress.begin("As served: loading", 1)
        model = self._model(Setup(Arithmetic.SERVED, threads=self._wishes.threads))
        self._progress.step()
        words = words_of(model.format, model.facts.word_type)
        wanted = [name for name in self._wishes.codecs if name in _SERVED_CODECS]
        treatments: list[Treatment] = [LastBits(group=Group.SERVED)]
        treatments += self._storing(wanted, words, model.facts.rotary, Group.SERVED)
        tallies = [(treatment, Tally()) for treatment in treatments]
        bench = Bench(model)
        self._progress.begin("As served", len(self._documents) * len(tallies))
        try:
            for document in self._documents:
                bench.treat(bench.read(document, self._sizes.prefix), tallies, self._progress.step)
        finally:
            self._add(tallies)

    def _storing(
        self, names: Sequence[str], words: KvFormat, rotary: Rotary | None, group: Group
    ) -> list[Treatment]:
        calibration = self._wishes.calibration
        return [Storing(name, codec_of(name, words, rotary, calibration), group) for name in names]


def codec_of(
    name: str, words: KvFormat, rotary: Rotary | None, calibration: Calibration | None
) -> BlockCodec:
    """A codec of the catalogue, or `uniform`: `mixed` with one step for all tokens, and a little larger.

    Raises `InvalidRequest` for a name that does not exist.
    """
    try:
        return _codec_of(name, words, rotary, calibration)
    except ValueError as error:
        raise InvalidRequest(f"--codec {name}: {error}.") from error


def _codec_of(
    name: str, words: KvFormat, rotary: Rotary | None, calibration: Calibration | None
) -> BlockCodec:
    if name == "uniform":
        settings = MixedSettings(bits=MixedSettings().bits + _UNIFORM_MORE, router="equal")
        return mixed_codec(words, rotary, calibration=calibration, settings=settings)
    if name.partition(":")[0] == "mixed":
        return build_codec(name, words, rotary, calibration=calibration)
    return build_codec(name, words, rotary)
