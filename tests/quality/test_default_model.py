"""The targets of the quality card, on a few hundred tokens: loose enough for so little text, no looser."""

from __future__ import annotations

import pytest

from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.codecs.calibrations import find_calibration
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.quality.card import Group, Line
from hotprefix.quality.run import QualityRun, Source, Wishes
from hotprefix.quality.sizes import QualitySizes
from hotprefix.quality.texts import Library, own_texts

SIZES = QualitySizes(documents=2, prefix=320, scored=96, haystacks=1)


class Silent:
    """Nobody is told of the progress."""

    def begin(self, stage: str, steps: int) -> None: ...

    def step(self) -> None: ...


@pytest.fixture(scope="module")
def lines(default_model: ModelManifest) -> dict[str, Line]:
    tokenizer = HfTokenizer(default_model.tokenizer)
    library = Library(own_texts(), tokenizer, default_model)
    calibration = find_calibration(default_model, None)
    assert calibration is not None
    wishes = Wishes(("int8", "layered", "int4", "uniform", "mixed"), (), False, calibration, None)
    run = QualityRun(Source(default_model, library, tokenizer), SIZES, wishes)
    run.run(Silent())
    assert {line.group for line in run.lines} == {Group.FLOOR, Group.CODEC}
    return {line.name: line for line in run.lines}


def kl(line: Line) -> float:
    return line.summary.kl_mean.value


@pytest.mark.model
def test_the_floor_is_far_below_everything_else(lines: dict[str, Line]) -> None:
    assert kl(lines["other chunking"]) < 1e-8
    assert 1e-7 < kl(lines["last bit flipped"]) < 1e-3


@pytest.mark.model
def test_int8_and_layered(lines: dict[str, Line]) -> None:
    int8, layered = lines["int8"], lines["layered"]
    assert kl(int8) < 5e-4
    assert int8.summary.same_top.value > 0.98
    assert int8.ratio is not None
    assert int8.ratio >= 1.9
    assert layered.ratio is not None
    assert layered.ratio >= 1.74  # sinks weigh more in a short text
    assert kl(layered) < 1.2 * kl(int8)


@pytest.mark.model
def test_mixed_is_small_near_and_better_than_uniform_bits(lines: dict[str, Line]) -> None:
    mixed = lines["mixed"]
    assert mixed.ratio is not None
    assert mixed.ratio >= 3
    assert mixed.summary.ppl_ratio.value < 1.01
    for rival in (lines["int4"], lines["uniform"]):
        assert mixed.bytes_per_token is not None
        assert rival.bytes_per_token is not None
        assert mixed.bytes_per_token <= rival.bytes_per_token
        assert kl(mixed) < kl(rival) / 2


@pytest.mark.model
def test_needles_that_were_found_are_found(lines: dict[str, Line]) -> None:
    for name in ("int8", "mixed"):
        needles = lines[name].needles
        assert needles is not None
        assert needles.asked >= 3
        assert needles.found >= needles.asked - 1
