"""Codecs by name."""

from __future__ import annotations

import pytest

from hotprefix.base.errors import UnsupportedModel
from hotprefix.pages.codecs.catalogue import CODECS, build_codec
from hotprefix.pages.format import CacheInput, KvFormat
from tests.pages.codecs.blocks import ROTARY, float_format, integer_format, random_block


@pytest.mark.parametrize("name", list(CODECS))
def test_a_codec_is_called_what_it_is_asked_for_as(name: str) -> None:
    assert build_codec(name, float_format(), ROTARY).name == name


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no codec 'int3'; choose one of raw, int8, layered, int4, fp8"):
        build_codec("int3", float_format(), ROTARY)


def test_an_option_that_a_codec_lacks_is_named() -> None:
    with pytest.raises(ValueError, match=r"raw does not take these options.*exact_layers"):
        build_codec("raw", float_format(), ROTARY, exact_layers=range(3))


def test_the_layers_that_layered_keeps_can_be_written_with_its_name() -> None:
    block = random_block(float_format(), 1)
    written = build_codec("layered:1-2", float_format(), ROTARY)
    given = build_codec("layered", float_format(), ROTARY, exact_layers=range(1, 3))
    assert written.name == "layered"
    assert written.encode(block, 0, 8) == given.encode(block, 0, 8)


@pytest.mark.parametrize("text", ["layered:", "layered:1", "layered:2-1", "layered:a-b", "layered:0-2:3"])
def test_a_range_of_layers_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write for instance layered:0-2"):
        build_codec(text, float_format(), ROTARY)


def test_layers_belong_to_layered_alone() -> None:
    with pytest.raises(ValueError, match="int8 does not take"):
        build_codec("int8:0-2", float_format(), ROTARY)


def test_layers_that_the_model_lacks_are_refused() -> None:
    with pytest.raises(ValueError, match="the model has layers 0 to 1"):
        build_codec("layered", float_format(layers=2), ROTARY)


@pytest.mark.parametrize("kind", ["u8", "u4"])
@pytest.mark.parametrize("name", ["int8", "layered", "int4", "fp8"])
def test_arenas_of_integers_take_raw_alone(name: str, kind: str) -> None:
    options = {"exact_layers": range(1)} if name == "layered" else {}
    with pytest.raises(UnsupportedModel, match=rf"{name}.*{kind}.*codec raw"):
        build_codec(name, integer_format(kind), ROTARY, **options)


def test_cache_inputs_must_say_their_layer() -> None:
    strange = KvFormat(8, (CacheInput("past.keys", "bf16", 16, (2, 8, 16)),))
    with pytest.raises(UnsupportedModel, match=r"past\.keys"):
        build_codec("int8", strange, ROTARY)
