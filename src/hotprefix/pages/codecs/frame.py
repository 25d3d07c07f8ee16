"""The head of a payload: enough to refuse what this codec, format and rotary did not write.

It does not guard the bytes behind it: tiers keep checksums of what they store.
"""

from __future__ import annotations

import struct
import zlib
from enum import IntEnum

from hotprefix.pages.codecs.base import BrokenPayload

_MAGIC = b"HK"
_VERSION = 1
_HEAD = struct.Struct("<2sBBII")
HEAD_BYTES = _HEAD.size


class Kind(IntEnum):
    """How the body is written."""

    CODED = 1
    RAW = 2


class Frame:
    """Writes and checks heads for one codec. `identity` is all that decoding depends on."""

    def __init__(self, identity: bytes) -> None:
        self._seed = zlib.crc32(identity)

    def head(self, kind: Kind, position: int, tokens: int) -> bytes:
        """The head of a payload for a block at `position`."""
        return _HEAD.pack(_MAGIC, _VERSION, kind, tokens, self._check(kind, position, tokens))

    def kind(self, payload: bytes, position: int, tokens: int) -> Kind:
        """How a payload's body is written. Raises `BrokenPayload` where the head is not this codec's."""
        if len(payload) < HEAD_BYTES:
            raise BrokenPayload(f"a payload of {len(payload)} bytes is shorter than its head")
        magic, version, kind, held, check = _HEAD.unpack_from(payload)
        if magic != _MAGIC or version != _VERSION or kind not in (Kind.CODED, Kind.RAW):
            raise BrokenPayload("the payload has no head of this version")
        if held != tokens:
            raise BrokenPayload(f"the payload holds {held} tokens, not {tokens}")
        if check != self._check(kind, position, tokens):
            raise BrokenPayload(f"the payload is of another codec, format or position than {position}")
        return Kind(kind)

    def _check(self, kind: int, position: int, tokens: int) -> int:
        return zlib.crc32(struct.pack("<BII", kind, position, tokens), self._seed)


def require_size(payload: bytes, size: int) -> None:
    """Raise `BrokenPayload` unless a payload has exactly `size` bytes."""
    if len(payload) != size:
        raise BrokenPayload(f"a payload has {len(payload)} bytes where {size} are expected")


def require_place(position: int, tokens: int, slots: int) -> None:
    """Raise `ValueError` unless a block can begin at `position` and hold `tokens`."""
    if not 0 <= position < 2**32:
        raise ValueError(f"a block begins at a position from 0 to 2^32 - 1, not at {position}")
    if not 1 <= tokens <= slots:
        raise ValueError(f"a block holds 1 to {slots} tokens, not {tokens}")
