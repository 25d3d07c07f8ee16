"""The order in which codes are stored: those of like spread beside each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.entropy import Symbols
from hotprefix.pages.codecs.experts import DROPPED, FLOAT8, Chosen
from hotprefix.pages.codecs.grid import Grid

_PIECES = (16, 8, 4, 2, 1)
_FLOAT8_SHIFT = 128
"""Their codes are like no others."""


class Arrangement:
    """Pieces of up to 16 channels of one token, of like spread, ordered by it. Both directions make the same
    from a grid and the tokens' experts; pieces of dropped tokens are left out."""

    def __init__(self, grid: Grid, chosen: Chosen, offsets: tuple[int, ...]) -> None:
        sides, layers, heads, channels = grid.kinds.shape
        tokens = chosen.shape[-1]
        piece = next(size for size in _PIECES if channels % size == 0)
        rows = sides * layers * heads
        self._shape = (sides, layers, heads, tokens, channels)
        self._cut = (rows, channels // piece, piece, tokens)
        by_kind = np.argsort(grid.kinds.reshape(rows, channels), axis=1, kind="stable")
        self._places = (by_kind + channels * np.arange(rows)[:, None]).reshape(-1)
        middles = grid.kinds.reshape(-1)[self._places].reshape(rows, -1, piece)[:, :, piece // 2]
        shifts = np.array([_shift(offset) for offset in offsets], np.int16)[chosen]
        shifts = np.broadcast_to(shifts, (sides, *chosen.shape)).reshape(rows, 1, tokens)
        kinds = (middles[:, :, None] + shifts).astype(np.uint8).reshape(-1)
        order = np.argsort(kinds, kind="stable")
        if DROPPED in offsets:
            is_kept = np.broadcast_to(chosen != offsets.index(DROPPED), (sides, *chosen.shape))
            kept = np.broadcast_to(is_kept.reshape(rows, 1, tokens), (rows, channels // piece, tokens))
            order = order[kept.reshape(-1)[order]]
        self._order = order

    @property
    def count(self) -> int:
        """How many codes are stored."""
        return len(self._order) * self._cut[2]

    def arranged(self, codes: Symbols) -> Symbols:
        """Codes [2, layers, kv heads, tokens, head size] in order, without the dropped."""
        rows, pieces, piece, tokens = self._cut
        columns = np.ascontiguousarray(codes.reshape(rows, tokens, -1).swapaxes(1, 2)).reshape(-1, tokens)
        cut = np.take(columns, self._places, axis=0).reshape(rows * pieces, piece, tokens).swapaxes(1, 2)
        return np.take(np.ascontiguousarray(cut).reshape(-1, piece), self._order, axis=0).reshape(-1)

    def restored(self, symbols: Symbols) -> Symbols:
        """Undo `arranged`, with 0 for the dropped."""
        rows, pieces, piece, tokens = self._cut
        cut = _scattered(symbols, piece, self._order, rows * pieces * tokens)
        turned = np.ascontiguousarray(cut.reshape(-1, tokens, piece).swapaxes(1, 2))
        columns = _scattered(turned, tokens, self._places, len(self._places))
        return np.ascontiguousarray(columns.reshape(rows, -1, tokens).swapaxes(1, 2)).reshape(self._shape)


def _scattered(codes: Symbols, width: int, places: NDArray[np.intp], count: int) -> Symbols:
    """`count` rows of `width` codes, those at `places` from `codes` in order, the others zero."""
    # One item a row: numpy moves it at once, and not code by code.
    row = np.dtype((np.void, width))
    rows = np.zeros(count, row)
    rows[places] = codes.reshape(-1).view(row)
    return rows.view(np.int8)


def _shift(offset: int) -> int:
    return {DROPPED: 0, FLOAT8: _FLOAT8_SHIFT}.get(offset, 2 * offset)
