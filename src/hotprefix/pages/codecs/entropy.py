"""Small whole numbers ↔ few bytes, by their own frequencies."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.base import BrokenPayload

Symbols = NDArray[np.int8]

_LEVEL, _WINDOW, _MEMORY = 1, -15, 9


def pack(symbols: Symbols) -> bytes:
    """Deflate without matches: Huffman codes that are renewed every 32,768 symbols, so neighbours had better
    be of the same kind."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zlib.Z_HUFFMAN_ONLY)
    return packer.compress(symbols.data) + packer.flush()


def unpack(packed: memoryview, least: int, most: int) -> Symbols:
    """The symbols, `least` to `most` of them, that are the whole of `packed`. Raises `BrokenPayload`."""
    unpacker = zlib.decompressobj(_WINDOW)
    try:
        # One more than there may be, so that the end of the stream is reached and a bomb does not go off.
        plain = unpacker.decompress(packed, most + 1)
    except zlib.error as error:
        raise BrokenPayload(f"the codes are damaged: {error}") from error
    if not least <= len(plain) <= most or not unpacker.eof or unpacker.unused_data:
        raise BrokenPayload(f"the codes are not those of {least} to {most} numbers")
    return np.frombuffer(plain, np.int8)
