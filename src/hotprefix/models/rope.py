"""Rotary position embedding as a model's config states it: frequencies, attention factor, lengths.

Position p turns the pair i of a head by p x f_i. The plain frequencies are f_i = base^(-2i/d) (RoFormer,
https://arxiv.org/abs/2104.09864); scaling changes them so that longer texts stay within what was trained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.errors import UnsupportedModel

Frequencies = NDArray[np.float64]
"""Radians a position, [rotated dimensions / 2]."""


class RopeKind(StrEnum):
    """How frequencies are scaled.

    LINEAR divides all (https://arxiv.org/abs/2306.15595). NTK raises the base, so that the fastest stay
    as they are. DYNAMIC does so by the text's length, and leaves texts of the trained length alone. YARN
    divides the slow ones, keeps the fast ones, blends between (https://arxiv.org/abs/2309.00071), and
    multiplies sine and cosine by a constant. LLAMA3 does the same by wavelength, without the constant.
    DIVISORS divides each by a number of its own, as GGUF files of Llama 3.1 state it.
    """

    LINEAR = "linear"
    NTK = "ntk"
    DYNAMIC = "dynamic"
    YARN = "yarn"
    LLAMA3 = "llama3"
    DIVISORS = "divisors"


@dataclass(frozen=True, slots=True)
class RopeScaling:
    """One scaling. Formulas and names follow transformers' `modeling_rope_utils`.

    `attention_factor` multiplies sine and cosine. The betas are YaRN's, in turns over the trained length;
    `truncate` rounds its limits to whole dimensions. The freq factors are Llama 3's.
    """

    kind: RopeKind
    factor: float = 1.0
    attention_factor: float = 1.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    divisors: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Rope:
    """`dimensions` of each head are turned. `trained_length` is what scaling starts from, and
    `context_length` what may be asked with it, both in tokens."""

    base: float
    dimensions: int
    trained_length: int
    context_length: int
    scaling: RopeScaling | None = None

    @property
    def attention_factor(self) -> float:
        """What sine and cosine are multiplied with."""
        return 1.0 if self.scaling is None else self.scaling.attention_factor

    @property
    def plain(self) -> Rope:
        """The same without scaling."""
        return replace(self, scaling=None)

    def frequencies(self) -> Frequencies:
        """The inverse frequencies that the graph must have, float64.

        Raises `UnsupportedModel` if the divisors are not as many as the frequencies.
        """
        scaling, plain = self.scaling, _plain(self.base, self.dimensions)
        if scaling is None:
            return plain
        match scaling.kind:
            case RopeKind.LINEAR:
                scaled: Frequencies = plain / scaling.factor
                return scaled
            case RopeKind.NTK:
                return _plain(ntk_base(self.base, scaling.factor, self.dimensions), self.dimensions)
            case RopeKind.DYNAMIC:
                # Served up to the trained length only, where the base is the trained one.
                return plain
            case RopeKind.YARN:
                return _yarn(plain, self.base, self.trained_length, scaling)
            case RopeKind.LLAMA3:
                return _llama3(plain, self.trained_length, scaling)
            case RopeKind.DIVISORS:
                if len(scaling.divisors) != len(plain):
                    raise UnsupportedModel(
                        f"{len(scaling.divisors)} rotary factors do not fit {len(plain)} frequencies"
                    )
                divided: Frequencies = plain / np.asarray(scaling.divisors)
                return divided

    def describe(self) -> str:
        """A stable text that differs wherever keys would; empty for what the graph alone determines."""
        if self.scaling is None:
            return ""
        return repr((self.base, self.dimensions, self.trained_length, asdict(self.scaling)))


def rope_from_json(found: Mapping[str, Any]) -> Rope:
    """What `dataclasses.asdict` made of a `Rope`. Raises `TypeError`, `KeyError` or `ValueError`."""
    scaling = found["scaling"]
    if scaling is not None:
        kind, divisors = RopeKind(scaling["kind"]), tuple(scaling["divisors"])
        scaling = RopeScaling(**{**scaling, "kind": kind, "divisors": divisors})
    return Rope(**{**found, "scaling": scaling})


def ntk_base(base: float, factor: float, dimensions: int) -> float:
    """The base under which the slowest frequency is divided by `factor` and the fastest is kept.

    From bloc97, "NTK-aware scaled RoPE", as YaRN's paper gives it in its section 3.1.
    """
    return float(base * factor ** (dimensions / (dimensions - 2)))


def yarn_attention_factor(factor: float, multiplier: float = 1.0) -> float:
    """YaRN's temperature as a factor on sine and cosine: 0.1 ln(s) + 1 (its section 3.4)."""
    return 1.0 if factor <= 1 else 0.1 * multiplier * math.log(factor) + 1.0


def _plain(base: float, dimensions: int) -> Frequencies:
    plain: Frequencies = 1.0 / base ** (np.arange(0, dimensions, 2, dtype=np.float64) / dimensions)
    return plain


def _yarn(plain: Frequencies, base: float, length: int, scaling: RopeScaling) -> Frequencies:
    dimensions = 2 * len(plain)

    def dimension_of(turns: float) -> float:
        return (dimensions * math.log(length / (turns * 2 * math.pi))) / (2 * math.log(base))

    low, high = dimension_of(scaling.beta_fast), dimension_of(scaling.beta_slow)
    if scaling.truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dimensions - 1)
    width = high - low or 0.001
    divided = np.clip((np.arange(len(plain)) - low) / width, 0.0, 1.0)
    blended: Frequencies = plain / scaling.factor * divided + plain * (1.0 - divided)
    return blended


def _llama3(plain: Frequencies, length: int, scaling: RopeScaling) -> Frequencies:
    turns = length * plain / (2 * math.pi)
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    kept = np.clip((turns - low) / (high - low), 0.0, 1.0)
    return (1.0 - kept) * plain / scaling.factor + kept * plain
