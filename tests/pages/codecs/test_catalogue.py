"""Codecs by name."""

from __future__ import annotations

import pytest

from hotprefix.base.errors import UnsupportedModel
from hotprefix.pages.codecs.catalogue import CODECS, build_codec
from hotprefix.pages.format import CacheInput, KvFormat
from tests.pages.codecs.blocks import ROTARY, float_format, integer_format


@pytest.mark.parametrize("name", list(CODECS))
def test_a_codec_is_called_what_it_is_asked_for_as(name: str) -> None:
    assert build_codec(name, float_format(), ROTARY).name == name


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"no codec 'int3'; choose one of raw, int8, layered, int4, fp8"):
        build_codec("int3", float_format(), ROTARY)


def test_an_option_that_a_codec_lacks_is_named() -> None:
    with pytest.raises(ValueError, match=r"raw does not take these options.*exact_layers"):
        build_codec("raw", float_format(), ROTARY, exact_layers=range(3))


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
