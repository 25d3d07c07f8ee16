"""A codec made of sections: groups of tensors, each with its way to be kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.base import Block
from hotprefix.pages.codecs.floats import Words, is_calm
from hotprefix.pages.codecs.frame import HEAD_BYTES, Frame, Kind, require_place, require_size
from hotprefix.pages.codecs.layout import Tensors
from hotprefix.pages.codecs.planes import Planes
from hotprefix.pages.codecs.quantiser import Quantiser
from hotprefix.pages.codecs.raw import RawBody
from hotprefix.pages.format import KvFormat


class Lossy(NamedTuple):
    """How a section is quantised."""

    planes: Planes
    quantiser: Quantiser


class Section(NamedTuple):
    """Tensors, and how they are quantised; None keeps their words."""

    tensors: Tensors
    lossy: Lossy | None


class SectionedCodec:
    """Codes each section in one vectorised pass over its layers.

    Tokens at positions below `exact_positions` keep their words. A block with a value that is not finite,
    or not below 2^100, is kept whole as it is.
    """

    is_lossless = False

    def __init__(
        self,
        name: str,
        kv_format: KvFormat,
        sections: Sequence[Section],
        exact_positions: int,
        identity: bytes,
    ) -> None:
        self.name = name
        self._sections = tuple(sections)
        self._exact = exact_positions
        self._raw = RawBody(kv_format)
        self._frame = Frame(identity)
        self.block_bytes = HEAD_BYTES + self._body_bytes(0, kv_format.block_size)

    def encode(self, block: Block, position: int, tokens: int) -> bytes:
        require_place(position, tokens, self._raw.slots)
        kept = self._kept(position, tokens)
        parts = self._coded(block, position, kept, tokens)
        if parts is None:
            head = self._frame.head(Kind.RAW, position, tokens)
            return b"".join([head, *self._raw.pack(block, tokens)])
        return b"".join([self._frame.head(Kind.CODED, position, tokens), *(part.data for part in parts)])

    def decode(self, payload: bytes, position: int, tokens: int, out: Block) -> None:
        require_place(position, tokens, self._raw.slots)
        kind = self._frame.kind(payload, position, tokens)
        kept = self._kept(position, tokens)
        size = self._raw.size(tokens) if kind is Kind.RAW else self._body_bytes(kept, tokens)
        require_size(payload, HEAD_BYTES + size)
        body = np.frombuffer(payload, np.uint8, offset=HEAD_BYTES)
        if kind is Kind.RAW:
            self._raw.unpack(body, tokens, out)
            return
        start = 0
        for section in self._sections:
            words = section.tensors.view(out)
            words[:, :, tokens:] = 0
            start = _fill(section, body, start, words[:, :, :tokens], kept, position)

    def payload_bytes(self, position: int, tokens: int) -> int:
        """Bytes of a payload, unless the block holds values that can't be quantised."""
        return HEAD_BYTES + self._body_bytes(self._kept(position, tokens), tokens)

    def _kept(self, position: int, tokens: int) -> int:
        return min(max(self._exact - position, 0), tokens)

    def _body_bytes(self, kept: int, tokens: int) -> int:
        return sum(_section_bytes(section, kept, tokens) for section in self._sections)

    def _coded(self, block: Block, position: int, kept: int, tokens: int) -> list[NDArray[np.generic]] | None:
        parts: list[NDArray[np.generic]] = []
        for tensors, lossy in self._sections:
            words = tensors.view(block)
            exact = tokens if lossy is None else kept
            if exact:
                parts.append(np.ascontiguousarray(words[:, :, :exact]))
            rest = words[:, :, exact:tokens]
            if lossy is None or not rest.size:
                continue
            if not is_calm(rest, tensors.element_type):
                return None
            for plane in lossy.planes.read(rest, tensors.element_type, position + exact):
                parts += lossy.quantiser.encode(plane)
        return parts


def _section_bytes(section: Section, kept: int, tokens: int) -> int:
    tensors, lossy = section
    exact = tokens if lossy is None else kept
    layers, heads = len(tensors.layers), tensors.heads
    size = layers * heads * exact * tensors.head_size * tensors.word_bytes
    if lossy is None or exact == tokens:
        return size
    shapes = lossy.planes.shapes(layers, heads, tokens - exact)
    return size + sum(lossy.quantiser.size(shape) for shape in shapes)


def _fill(section: Section, body: Block, start: int, words: Words, kept: int, position: int) -> int:
    """Write a section's words from its part of the body; gives where the next one starts."""
    tensors, lossy = section
    layers, heads, tokens, _ = words.shape
    exact = tokens if lossy is None else kept
    if exact:
        target = words[:, :, :exact]
        end = start + target.size * target.itemsize
        target[...] = body[start:end].view(words.dtype).reshape(target.shape)
        start = end
    if lossy is None or exact == tokens:
        return start
    planes = []
    for shape in lossy.planes.shapes(layers, heads, tokens - exact):
        end = start + lossy.quantiser.size(shape)
        planes.append(lossy.quantiser.decode(body[start:end], shape))
        start = end
    lossy.planes.write(planes, tensors.element_type, position + exact, words[:, :, exact:])
    return start
