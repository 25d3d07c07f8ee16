"""Storage codecs by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from hotprefix.pages.codecs.base import BlockCodec
from hotprefix.pages.codecs.mixed_preset import mixed_codec, parse_settings
from hotprefix.pages.codecs.presets import fp8_codec, int4_codec, int8_codec, layered_codec
from hotprefix.pages.codecs.raw import RawCodec
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary

_RANGE = re.compile(r"(\d{1,4})-(\d{1,4})")


def _raw(kv_format: KvFormat, rotary: Rotary | None) -> BlockCodec:
    return RawCodec(kv_format)


CODECS: dict[str, Callable[..., BlockCodec]] = {
    "raw": _raw,
    "int8": int8_codec,
    "layered": layered_codec,
    "int4": int4_codec,
    "fp8": fp8_codec,
    "mixed": mixed_codec,
}
"""Constructors by name; each takes (KV format, rotary or None) and its own options."""


def build_codec(name: str, kv_format: KvFormat, rotary: Rotary | None, **options: Any) -> BlockCodec:
    """The codec of a name for blocks of a format; `layered:4-7` is `layered` that keeps those layers,
    `mixed:5` and `mixed:bits=5,cold=int4` are `mixed` with those settings.

    `rotary` is what the model embeds positions with; without it keys are quantised as they are, at a
    larger error. Raises `ValueError` for a name or option that does not exist and `UnsupportedModel`
    where the format can't be coded.
    """
    name, colon, text = name.partition(":")
    if colon and name == "mixed":
        options["settings"] = parse_settings(text)
    elif colon:
        options["exact_layers"] = _layers(text)
    if name not in CODECS:
        raise ValueError(f"there is no codec {name!r}; choose one of {', '.join(CODECS)}")
    try:
        return CODECS[name](kv_format, rotary, **options)
    except TypeError as error:
        raise ValueError(f"codec {name} does not take these options: {error}") from error


def _layers(text: str) -> range:
    found = _RANGE.fullmatch(text)
    if found is None or int(found[1]) > int(found[2]):
        raise ValueError(f"{text!r} is no range of layers; write for instance layered:0-2")
    return range(int(found[1]), int(found[2]) + 1)
