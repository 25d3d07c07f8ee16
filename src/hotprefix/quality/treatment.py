"""What can be done to the KV of a prefix before a model goes on from it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.base import BlockCodec
from hotprefix.quality.card import Group
from hotprefix.quality.passage import Stored, through, with_last_bits_flipped

Blocks = NDArray[np.uint8]
"""16-bit KV of a prefix, [blocks, block bytes]."""


class Treatment(Protocol):
    """Something that is done to the KV of a prefix."""

    @property
    def name(self) -> str: ...

    @property
    def group(self) -> Group: ...

    def apply(self, blocks: Blocks, slots: int, tokens: int) -> Stored:
        """The prefix afterwards, and the bytes it took; 0 where nothing is stored."""
        ...


class Storing(NamedTuple):
    """A codec, there and back."""

    name: str
    codec: BlockCodec
    group: Group = Group.CODEC

    def apply(self, blocks: Blocks, slots: int, tokens: int) -> Stored:
        return through(self.codec, blocks, slots, tokens)


class LastBits(NamedTuple):
    """Every value's last bit is flipped: less than that no store of 16-bit words can change."""

    name: str = "last bit flipped"
    group: Group = Group.FLOOR

    def apply(self, blocks: Blocks, slots: int, tokens: int) -> Stored:
        return Stored(with_last_bits_flipped(blocks), 0)
