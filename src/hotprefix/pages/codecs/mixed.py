"""mixed: a router says which tokens deserve precision, and codes take as many bits as they need.

Every channel has its own step, so that an error of any channel moves the model's output about equally;
a token's expert makes all its steps finer or coarser by powers of two. What is left is a whole number
for each value, small for most, and Huffman codes store it in about its entropy. So bits go where they
matter: to channels that attention looks at, to layers that are sensitive, to tokens that are looked at.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, Protocol

import numpy as np

from hotprefix.pages.codecs.arrangement import Arrangement
from hotprefix.pages.codecs.assembly import rotary_identity
from hotprefix.pages.codecs.base import Block, BrokenPayload
from hotprefix.pages.codecs.entropy import Symbols, pack, unpack
from hotprefix.pages.codecs.experts import DROPPED, FLOAT8, Chosen, Experts
from hotprefix.pages.codecs.float8 import BIAS, LARGEST, e4m3_values, to_e4m3
from hotprefix.pages.codecs.floats import LIMIT, Floats
from hotprefix.pages.codecs.frame import HEAD_BYTES, Frame, Kind, require_place, require_size
from hotprefix.pages.codecs.grid import Grid
from hotprefix.pages.codecs.raw import RawBody
from hotprefix.pages.codecs.stock import Stock
from hotprefix.pages.codecs.token_scores import TokenScorer
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary

ESCAPE = -128
"""The code of a value that is too far out: it is stored as it is, behind the codes."""

_MOST = 127
_MINUS_ZERO = 128
_SPECIAL_FACTORS = {DROPPED: 0.0, FLOAT8: 1.0}
_HIGHEST_SCORE = 64.0
_COUNTS = struct.Struct("<II")


class GridSource(Protocol):
    """Where grids come from: a calibration, or the block itself."""

    @property
    def stored_bytes(self) -> int:
        """Bytes that a payload holds of a grid."""
        ...

    def measure(self, values: Floats) -> tuple[Grid, bytes]: ...

    def restore(self, stored: Block) -> Grid: ...


class FixedGrid:
    """The same grid for every block; nothing of it is stored."""

    stored_bytes = 0

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def measure(self, values: Floats) -> tuple[Grid, bytes]:
        return self._grid, b""

    def restore(self, stored: Block) -> Grid:
        return self._grid


class Router(NamedTuple):
    """Who scores tokens, and the experts that they go to."""

    scorer: TokenScorer
    experts: Experts


class MixedCodec:
    """Tokens at positions below `exact_positions` keep their words; a block with a value that is not finite,
    or not below 2^100, and one that would not get smaller, is kept whole as it is.

    A value differs by at most half of its step, which `largest_steps` gives. `expected_bits` a value is
    what blocks of the calibration's text took.
    """

    name = "mixed"
    is_lossless = False

    def __init__(
        self,
        kv_format: KvFormat,
        rotary: Rotary | None,
        grids: GridSource,
        router: Router,
        identity: bytes,
        expected_bits: float,
        exact_positions: int,
    ) -> None:
        self._stock = Stock(kv_format, rotary, self.name)
        self._raw = RawBody(kv_format)
        self._grids = grids
        self._router = router
        self._exact = exact_positions
        offsets = router.experts.offsets
        parts = (kv_format.describe(), str(offsets), str(exact_positions))
        self._frame = Frame("/".join(("mixed", *parts)).encode() + rotary_identity(rotary) + identity)
        self._factors = np.array([_SPECIAL_FACTORS.get(o, 2.0**o) for o in offsets], np.float32)
        self._float8 = offsets.index(FLOAT8) if FLOAT8 in offsets else None
        self._e4m3 = e4m3_values()
        size = self._stock.dimensions
        values = 2 * size.layers * size.heads * size.head_size * kv_format.block_size
        self.block_bytes = HEAD_BYTES + grids.stored_bytes + int(values * expected_bits / 8)

    def encode(self, block: Block, position: int, tokens: int) -> bytes:
        require_place(position, tokens, self._raw.slots)
        exact = self._exact_tokens(position, tokens)
        body = self._coded(block, position, exact, tokens)
        if body is None or sum(map(len, body)) >= self._raw.size(tokens):
            head = self._frame.head(Kind.RAW, position, tokens)
            return b"".join([head, *self._raw.pack(block, tokens)])
        return b"".join([self._frame.head(Kind.CODED, position, tokens), *body])

    def decode(self, payload: bytes, position: int, tokens: int, out: Block) -> None:
        require_place(position, tokens, self._raw.slots)
        kind = self._frame.kind(payload, position, tokens)
        body = np.frombuffer(payload, np.uint8, offset=HEAD_BYTES)
        if kind is Kind.RAW:
            require_size(payload, HEAD_BYTES + self._raw.size(tokens))
            self._raw.unpack(body, tokens, out)
            return
        exact = self._exact_tokens(position, tokens)
        start = exact * self._stock.token_bytes
        if len(body) < start:
            raise BrokenPayload("the payload ends within the tokens that are kept as they are")
        values = None if exact == tokens else self._values(body[start:], tokens - exact)
        if values is None:
            require_size(payload, HEAD_BYTES + start)
        self._stock.clear(out, slice(tokens, self._raw.slots))
        self._stock.put_words(body[:start], slice(0, exact), out)
        if values is not None:
            self._stock.write(values, position, slice(exact, tokens), out)

    def largest_steps(self, block: Block, position: int, tokens: int) -> Floats:
        """The step that each value of a coded block was rounded to, [2, layers, heads, tokens, head size]
        without the exact tokens; infinite where an expert drops, and an eighth of the distance to the mean,
        at least 2^-9 of a step, where it codes floats. Steps of keys hold before the rotary embedding."""
        exact = self._exact_tokens(position, tokens)
        values = self._stock.read(block, position, slice(exact, tokens))
        if values is None:
            raise ValueError("the block holds values that are kept as they are")
        grid, _ = self._grids.measure(values)
        chosen = self._choose(values)
        with np.errstate(divide="ignore"):
            factors = np.float32(1) / self._factors[chosen]
        steps: Floats = grid.steps[:, :, :, None] * factors[None, ..., None]
        if self._float8 is not None:
            distances = np.abs(values - grid.means[:, :, :, None]) / 8
            floating = np.maximum(distances, steps * np.float32(2.0**-9))
            steps = np.where((chosen == self._float8)[None, ..., None], floating, steps)
        return steps

    def _exact_tokens(self, position: int, tokens: int) -> int:
        return min(max(self._exact - position, 0), tokens)

    def _choose(self, values: Floats) -> Chosen:
        # Squares of huge values overflow; such tokens are as important as any.
        with np.errstate(over="ignore", invalid="ignore"):
            scores = np.nan_to_num(self._router.scorer.score(values), nan=_HIGHEST_SCORE)
        return self._router.experts.choose(np.clip(scores, -_HIGHEST_SCORE, _HIGHEST_SCORE))

    def _coded(self, block: Block, position: int, exact: int, tokens: int) -> list[bytes] | None:
        kept = [part.tobytes() for part in self._stock.words(block, slice(0, exact))] if exact else []
        if exact == tokens:
            return kept
        values = self._stock.read(block, position, slice(exact, tokens))
        if values is None:
            return None
        grid, stored = self._grids.measure(values)
        chosen = self._choose(values)
        codes = self._codes(values, grid, chosen)
        escaped = values[codes == ESCAPE]
        arranged = Arrangement(grid, chosen, self._router.experts.offsets).arranged(codes)
        packed = pack(np.concatenate((chosen.reshape(-1).view(np.int8), arranged)))
        return [*kept, stored, _COUNTS.pack(len(packed), len(escaped)), packed, escaped.tobytes()]

    def _codes(self, values: Floats, grid: Grid, chosen: Chosen) -> Symbols:
        scaled = values - grid.means[:, :, :, None]
        with np.errstate(over="ignore"):
            scaled *= (1 / grid.steps)[:, :, :, None]
            scaled *= self._factors[chosen][None, ..., None]
        floating = None if self._float8 is None else chosen == self._float8
        floats = None if floating is None else _float_codes(scaled[:, floating])
        np.rint(scaled, out=scaled)
        is_far = np.abs(scaled) > _MOST
        if is_far.any():
            scaled[is_far] = ESCAPE
        codes = scaled.astype(np.int8)
        if floats is not None:
            codes[:, floating] = floats
        return codes

    def _values(self, body: Block, tokens: int) -> Floats:
        """Undo `_coded`. Raises `BrokenPayload`."""
        size = self._stock.dimensions
        entries = size.layers * size.heads * tokens
        shape = (2, size.layers, size.heads, tokens, size.head_size)
        start = self._grids.stored_bytes + _COUNTS.size
        if len(body) < start:
            raise BrokenPayload("the payload ends before its codes")
        grid = self._grids.restore(body[: self._grids.stored_bytes])
        packed, far = _COUNTS.unpack(body[start - _COUNTS.size : start].tobytes())
        if len(body) != start + packed + 4 * far:
            raise BrokenPayload("the payload is not as long as it says")
        chosen, symbols = self._unpacked(body[start : start + packed], entries)
        chosen = chosen.reshape(shape[1:4])
        arrangement = Arrangement(grid, chosen, self._router.experts.offsets)
        if len(symbols) != arrangement.count:
            raise BrokenPayload(f"there are {len(symbols)} codes where {arrangement.count} are expected")
        codes = arrangement.restored(symbols)
        values = self._stepped(codes, grid, chosen)
        is_far = codes == ESCAPE
        if far or is_far.any():
            values[is_far] = _far_values(body[start + packed :], int(np.count_nonzero(is_far)))
        return values

    def _unpacked(self, packed: Block, entries: int) -> tuple[Chosen, Symbols]:
        most = entries * (1 + 2 * self._stock.dimensions.head_size)
        symbols = unpack(packed.data, entries, most)
        chosen = symbols[:entries].view(np.uint8)
        if chosen.size and int(chosen.max()) >= len(self._factors):
            raise BrokenPayload("a token has an expert that does not exist")
        return chosen, symbols[entries:]

    def _stepped(self, codes: Symbols, grid: Grid, chosen: Chosen) -> Floats:
        factors = np.divide(1, self._factors, out=np.zeros_like(self._factors), where=self._factors > 0)
        values = codes.astype(np.float32)
        if self._float8 is not None:
            floating = chosen == self._float8
            values[:, floating] = np.take(self._e4m3, codes[:, floating].view(np.uint8))
        values *= factors[chosen][None, ..., None]
        values *= grid.steps[:, :, :, None]
        values += grid.means[:, :, :, None]
        return values


def _float_codes(steps: Floats) -> Symbols:
    """e4m3 words, with `ESCAPE` (which would be minus zero) for what is too large."""
    is_far = np.abs(steps) > LARGEST
    words = to_e4m3(np.where(is_far, np.float32(0), steps) * BIAS)
    words[words == _MINUS_ZERO] = 0
    words[is_far] = _MINUS_ZERO
    return words.view(np.int8)


def _far_values(stored: Block, count: int) -> Floats:
    """The values behind the codes, one for each escape. Raises `BrokenPayload`."""
    far = np.frombuffer(stored.tobytes(), np.float32)
    with np.errstate(invalid="ignore"):
        is_sound = len(far) == count and bool((np.abs(far) <= 2 * LIMIT).all())
    if not is_sound:
        raise BrokenPayload("the values behind the codes are not those of the escapes")
    return far
