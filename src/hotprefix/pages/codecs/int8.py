"""int8: keys per channel before the rotary embedding, values per token."""

from __future__ import annotations

from hotprefix.pages.codecs.assembly import assemble
from hotprefix.pages.codecs.base import BlockCodec
from hotprefix.pages.codecs.eight_bit import Int8
from hotprefix.pages.codecs.quantiser import CHANNEL, TOKEN
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary

SINKS = 4
"""First positions kept exactly: attention leans on them whatever the text."""


def int8_codec(kv_format: KvFormat, rotary: Rotary | None, *, exact_positions: int = SINKS) -> BlockCodec:
    """About 1.91 times smaller than 16 bits at head size 64 and 32 tokens a block."""
    return assemble("int8", kv_format, rotary, (Int8(CHANNEL), Int8(TOKEN)), exact_positions)
