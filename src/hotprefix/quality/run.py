"""`hotprefix quality`: everything that is measured with one model, line by line of the card."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from hotprefix.base.errors import InvalidRequest, UnsupportedModel
from hotprefix.engine.graph import Told
from hotprefix.engine.strategy.base import Cutter
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
from hotprefix.quality.cutting import CuttingReader, cutting_choice
from hotprefix.quality.measure import Bench, Tally, shift_of
from hotprefix.quality.metrics import Shift
from hotprefix.quality.model import Arithmetic, MeasuredModel, Setup, words_of
from hotprefix.quality.needles import Haystack, Needle, haystack
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
    """What is measured. `strategies` as a request's header asks for them; without a window of their own they
    get half of the prefix. `calibration` None: the codec `mixed` goes by each block's own numbers."""

    codecs: Sequence[str]
    precisions: Sequence[str]
    is_served: bool
    calibration: Calibration | None
    threads: int | None
    strategies: Sequence[str] = ()


class Source(NamedTuple):
    """The model, and the texts that it is measured with."""

    manifest: ModelManifest
    library: Library
    tokenizer: Tokenizer


class QualityRun:
    """Measures one thing after the other; `lines` are there as soon as they are found, and `left_out` says
    what this model or machine can't have.

    Raises `ModelError`, and `InvalidRequest` for texts that are too short or a model that can't read so much.
    """

    def __init__(self, source: Source, sizes: QualitySizes, wishes: Wishes) -> None:
        self._source = source
        self._sizes = sizes
        self._wishes = wishes
        source.library.require_context(sizes.longest)
        self._strategies = {text: cutting_choice(text) for text in wishes.strategies}
        self._documents = source.library.documents(Part.MEASURED, sizes.documents, sizes.length)
        self._solved: list[tuple[Haystack, list[Needle]]] = []
        self.lines: list[Line] = []
        self.left_out: list[str] = []
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
            if self._strategies:
                self._cut(references)
        if self._wishes.is_served:
            self._served()

    def _model(self, setup: Setup) -> MeasuredModel:
        return MeasuredModel(self._source.manifest, setup, self._sizes.longest)

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
            tally.line(treatment.name, treatment.group, self.raw_bytes_per_token)
            for treatment, tally in tallies
            if tally.shifts
        ]

    def _needles(self, bench: Bench, tallies: Sequence[tuple[Treatment, Tally]], slots: int) -> None:
        # Questions begin with a block of their own.
        length = self._sizes.prefix // slots * slots
        hays = self._source.library.documents(Part.MEASURED, self._sizes.haystacks, length)
        self._progress.begin("Needles", len(hays) * len(tallies))
        for seed, hay in enumerate(hays):
            stack = haystack(hay.tokens, self._source.tokenizer, length, seed)
            solved = bench.search(stack, tallies, self._progress.step)
            self.unsolved += len(stack.needles) - len(solved)
            self._solved.append((stack, solved))

    def _precision(self, precision: str, references: References) -> None:
        self._progress.begin(f"Arena in {precision}", len(self._documents))
        try:
            model = self._model(Setup(Arithmetic.EXACT, precision, self._wishes.threads))
        except UnsupportedModel as error:
            # Not every processor has every precision, and a model may have too few layers to be cut.
            self.left_out.append(f"{precision}: {error}")
            return
        bench, shifts = Bench(model), []
        for number, document in enumerate(self._documents):
            logits = bench.logits(document, self._sizes.prefix)
            shifts.append(shift_of(document, self._sizes.prefix, references.get(number), logits))
            self._progress.step()
        size = model.format.block_bytes / model.format.block_size
        ratio = self.raw_bytes_per_token / size
        self.lines.append(Line(precision, Group.PRECISION, summarise(shifts), size, ratio))

    def _cut(self, references: References) -> None:
        self._progress.begin("Strategies: loading", 1)
        manifest, prefix = self._source.manifest, self._sizes.prefix
        setup = Setup(Arithmetic.EXACT, threads=self._wishes.threads)
        # Twice a window, which is no larger than the prefix: a cut needs room for copies.
        room = max(2 * prefix, self._sizes.longest)
        try:
            model = MeasuredModel(manifest, setup, room, told=Told.ATTENTION)
        except UnsupportedModel as error:
            self.left_out.append(f"strategies: {error}")
            return
        self._progress.step()
        reader = CuttingReader(model, manifest.context_length)
        half = prefix // 2 // reader.block_size * reader.block_size
        for text, asked in self._strategies.items():
            name, choice = text, asked
            if choice.window is None:
                name, choice = f"{text}; window={half}", replace(choice, window=half)
            try:
                cutter = reader.cutter(choice)
            except InvalidRequest as error:
                self.left_out.append(f"{name}: {error}")
                continue
            self.lines.append(self._strategy(name, reader, cutter, references))

    def _strategy(self, name: str, reader: CuttingReader, cutter: Cutter, references: References) -> Line:
        tally, prefix = Tally(), self._sizes.prefix
        self._progress.begin(name, len(self._documents) + len(self._solved))
        for number, document in enumerate(self._documents):
            with reader.text(cutter) as text:
                text.read(document.tokens[:prefix])
                logits = text.score(document.tokens[prefix:])
                tally.shifts.append(shift_of(document, prefix, references.get(number), logits))
                tally.stored += int(text.blocks * reader.block_size * self.raw_bytes_per_token)
                tally.tokens += prefix
            self._progress.step()
        for hay, solved in self._solved:
            with reader.text(cutter) as text:
                text.read(hay.tokens)
                text.make_room(max((len(one.question) for one in solved), default=0))
                tally.found += sum(hay.is_found(one, text.ask(one.question)) for one in solved)
            tally.asked += len(solved)
            self._progress.step()
        return tally.line(name, Group.STRATEGY, self.raw_bytes_per_token)

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
