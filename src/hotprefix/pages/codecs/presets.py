"""The codecs that quantise: which quantiser keys and values get."""

from __future__ import annotations

from hotprefix.pages.codecs.assembly import assemble
from hotprefix.pages.codecs.base import BlockCodec
from hotprefix.pages.codecs.eight_bit import Int8
from hotprefix.pages.codecs.few_bit import FewBits
from hotprefix.pages.codecs.float8 import Float8
from hotprefix.pages.codecs.hadamard import Hadamard
from hotprefix.pages.codecs.layout import layer_count
from hotprefix.pages.codecs.quantiser import CHANNEL, TOKEN
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary

SINKS = 1
"""First positions kept exactly: attention leans on the first token whatever the text."""


def int8_codec(kv_format: KvFormat, rotary: Rotary | None, *, exact_positions: int = SINKS) -> BlockCodec:
    """Keys per channel before the rotary embedding, values per token."""
    return assemble("int8", kv_format, rotary, (Int8(CHANNEL), Int8(TOKEN)), exact_positions)


def layered_codec(
    kv_format: KvFormat,
    rotary: Rotary | None,
    *,
    exact_layers: range = range(3),
    exact_positions: int = SINKS,
) -> BlockCodec:
    """`int8`, with the layers of a range kept as they are. Raises `ValueError` if the model lacks them."""
    layers, kept = layer_count(kv_format), frozenset(exact_layers)
    if not kept <= set(range(layers)):
        raise ValueError(f"layers {exact_layers} can't be kept: the model has layers 0 to {layers - 1}")
    quantisers = (Int8(CHANNEL), Int8(TOKEN))
    return assemble("layered", kv_format, rotary, quantisers, exact_positions, kept)


def int4_codec(kv_format: KvFormat, rotary: Rotary | None, *, exact_positions: int = SINKS) -> BlockCodec:
    """Keys per channel before the rotary embedding, values per token behind a Hadamard matrix."""
    quantisers = (FewBits(4, CHANNEL), Hadamard(FewBits(4, CHANNEL)))
    return assemble("int4", kv_format, rotary, quantisers, exact_positions)


def fp8_codec(kv_format: KvFormat, rotary: Rotary | None, *, exact_positions: int = SINKS) -> BlockCodec:
    """Keys and values per token. Keys stay rotated: a scale over a token gains nothing from turning back."""
    return assemble("fp8", kv_format, None, (Float8(), Float8()), exact_positions)
