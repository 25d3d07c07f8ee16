"""The `mixed` codec as people ask for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hotprefix.base.errors import UnsupportedModel
from hotprefix.pages.codecs.base import BlockCodec
from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.codecs.experts import Experts, experts_down_to
from hotprefix.pages.codecs.grid import OwnGrids, calibrated_grid
from hotprefix.pages.codecs.mixed import FixedGrid, GridSource, MixedCodec, Router
from hotprefix.pages.codecs.stock import Dimensions, Stock
from hotprefix.pages.codecs.token_scores import (
    EqualScorer,
    LinearTokenScorer,
    ShortScorer,
    TokenScorer,
)
from hotprefix.pages.format import KvFormat
from hotprefix.pages.rotary import Rotary

_KEYS, _VALUES = 0, 1
_LEAST_BITS, _MOST_BITS = 1.5, 9.0

_OWN_SHARES = (0.02, 0.06, 0.22, 0.5, 0.17, 0.03)
"""Parts of the tokens of a text to which short values give each of `OFFSETS`, about."""

ROUTERS = ("auto", "learned", "short-values", "short-keys", "equal")


@dataclass(frozen=True, slots=True)
class MixedSettings:
    """`bits` is what a value takes on average, about, whoever gets them. `cold` is the precision of the
    tokens that matter least: fp8, int8, int6, int5, int4, int3, int2 or drop. `capacity` times its usual
    share is what an expert takes of a block at most. The first `exact_positions` keep their 16 bits.
    `router` is `auto` (learned where there is a calibration, else short-values), one of these, or `equal`,
    which gives all tokens the same."""

    bits: float = 4.0
    cold: str = "int2"
    capacity: float = 1.5
    exact_positions: int = 4
    router: str = "auto"


def parse_settings(text: str) -> MixedSettings:
    """`5`, or `bits=5,cold=int4,capacity=2,exact_positions=4,router=equal` → settings.

    All parts may be left out. Raises `ValueError`.
    """
    settings = MixedSettings()
    for part in text.split(","):
        name, is_set, value = part.partition("=")
        if not is_set:
            name, value = "bits", part
        kind = _KINDS.get(name)
        try:
            if kind is None:
                raise ValueError(name)
            settings = replace(settings, **{name: kind(value)})
        except ValueError:
            raise ValueError(
                f"{part!r} is no setting of mixed; write for instance mixed:5 or mixed:bits=5,cold=int4"
            ) from None
    return settings


_KINDS: dict[str, Callable[[str], Any]] = {
    "bits": float,
    "cold": str,
    "capacity": float,
    "exact_positions": int,
    "router": str,
}


def mixed_codec(
    kv_format: KvFormat,
    rotary: Rotary | None,
    *,
    calibration: Calibration | None = None,
    settings: MixedSettings | None = None,
) -> BlockCodec:
    """Raises `ValueError` for settings out of range, `UnsupportedModel` for another model's calibration."""
    settings = settings or MixedSettings()
    if not _LEAST_BITS <= settings.bits <= _MOST_BITS:
        raise ValueError(
            f"{settings.bits:g} bits a value can't be had: {_LEAST_BITS:g} to {_MOST_BITS:g} can"
        )
    if settings.exact_positions < 0:
        raise ValueError(f"{settings.exact_positions} positions can't be kept exactly: 0 or more can")
    size = Stock(kv_format, rotary, "mixed").dimensions
    grids: GridSource = OwnGrids(size, settings.bits)
    identity = f"{settings.bits:g}/".encode()
    if calibration is not None:
        _require_fit(calibration, size)
        grids = FixedGrid(calibrated_grid(calibration, settings.bits))
        identity += calibration.digest()
    # The experts' numbers take a few bits for each token and head.
    expected = settings.bits + 1 / size.head_size
    router = _router(calibration, settings)
    return MixedCodec(kv_format, rotary, grids, router, identity, expected, settings.exact_positions)


def _require_fit(calibration: Calibration, size: Dimensions) -> None:
    layers, heads, head_size = calibration.shape
    if (layers, heads, head_size) != (size.layers, size.heads, size.head_size):
        raise UnsupportedModel(
            f"the calibration is for {layers} layers and {heads} KV heads of {head_size}, and this model has "
            f"{size.layers} and {size.heads} of {size.head_size}: run 'hotprefix calibrate' for it"
        )


def _router(calibration: Calibration | None, settings: MixedSettings) -> Router:
    name = settings.router
    if name not in ROUTERS or (name == "learned" and calibration is None):
        raise ValueError(f"there is no router {name!r} here; choose one of {', '.join(ROUTERS)}")
    if name == "equal":
        return Router(EqualScorer(), Experts((0,), (1.0,), 1.0))
    scorer: TokenScorer = ShortScorer(_KEYS if name == "short-keys" else _VALUES)
    shares = _OWN_SHARES
    if calibration is not None and name in ("auto", "learned"):
        scorer, shares = LinearTokenScorer(calibration), tuple(calibration.shares.tolist())
    return Router(scorer, experts_down_to(settings.cold, shares, settings.capacity))
