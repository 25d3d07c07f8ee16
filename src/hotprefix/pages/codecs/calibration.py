"""What `hotprefix calibrate` learns about a model's KV: steps, and who deserves finer ones."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.errors import ModelError
from hotprefix.pages.codecs.floats import Floats

MOST_CHANNELS = 2**24
"""A file that claims more is none of ours."""

_ARRAYS = ("means", "steps", "spreads", "router", "bias", "shares", "w", "b")
_DIMENSIONS = {"means": 4, "steps": 4, "spreads": 4, "router": 3, "bias": 2, "shares": 1, "w": 2, "b": 1}


@dataclass(frozen=True, slots=True)
class Calibration:
    """Everything that the `mixed` codec knows of a model.

    `means`, `steps` and `spreads` are [2, layers, kv heads, head size]: of keys before the rotary embedding,
    then of values. A value of a token of middling importance is rounded to its mean and whole steps;
    `spreads` (standard deviations) only say how many bits that is likely to take.
    `router` [layers, kv heads, features] and `bias` [layers, kv heads] score a token, in bits that it
    deserves beyond the middle; `shares` say which part of all tokens deserved each of `OFFSETS`.
    `w` [layers, features] and `b` [layers] score tokens for the sequence strategies.
    `fingerprint` and `source` name the model.
    """

    fingerprint: str
    source: str
    means: Floats
    steps: Floats
    spreads: Floats
    router: Floats
    bias: Floats
    shares: Floats
    w: Floats
    b: Floats

    def __post_init__(self) -> None:
        """Raises `ValueError` for arrays that don't fit together."""
        for name in _ARRAYS:
            array: Floats = getattr(self, name)
            if array.ndim != _DIMENSIONS[name] or not np.isfinite(array).all():
                raise ValueError(f"'{name}' has the wrong shape or holds no numbers")
        two, layers, heads, size = self.steps.shape
        fitting = (
            two == 2
            and self.means.shape == self.spreads.shape == self.steps.shape
            and self.router.shape == (layers, heads, 2 * size + 2)
            and self.bias.shape == (layers, heads)
            and self.w.shape == (layers, 2 * heads * size)
            and self.b.shape == (layers,)
        )
        if not fitting:
            raise ValueError("its arrays are of different models")
        if not ((self.steps > 0).all() and (self.spreads > 0).all() and (self.shares > 0).all()):
            raise ValueError("steps, spreads and shares must be positive")

    @property
    def shape(self) -> tuple[int, int, int]:
        """Layers, kv heads and head size of the model."""
        _, layers, heads, size = self.steps.shape
        return layers, heads, size

    def digest(self) -> bytes:
        """Names all that decoding depends on."""
        parts = (self.means, self.steps, self.spreads)
        return hashlib.blake2b(b"".join(part.tobytes() for part in parts), digest_size=16).digest()

    def save(self, path: Path) -> None:
        """Write a `.npz`, in half precision where that is enough."""
        arrays: dict[str, NDArray[np.generic]] = {
            name: getattr(self, name).astype(np.float16) for name in ("means", "spreads", "router", "w")
        }
        arrays |= {name: getattr(self, name).astype(np.float32) for name in ("bias", "shares", "b")}
        # Steps differ by more than half precision spans; their logarithm does not.
        arrays["log2_steps"] = np.log2(self.steps).astype(np.float16)
        arrays["model"] = np.array([self.fingerprint, self.source])
        part = path.with_name(path.name + ".part")
        with part.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)
        part.replace(path)


def load_calibration(path: Path) -> Calibration:
    """What `Calibration.save` wrote. Raises `ModelError`."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        fingerprint, source = (str(word) for word in arrays.pop("model"))
        floats = {name: array.astype(np.float32) for name, array in arrays.items()}
        floats["steps"] = np.exp2(floats.pop("log2_steps"))
        if sum(array.size for array in floats.values()) > MOST_CHANNELS:
            raise ValueError("it is larger than any model's")
        return Calibration(fingerprint, source, **floats)
    except FileNotFoundError as error:
        raise ModelError(f"{path} does not exist: 'hotprefix calibrate' writes such a file.") from error
    except (OSError, ValueError, KeyError, EOFError, TypeError, BadZipFile, zlib.error) as error:
        raise ModelError(f"{path} is no calibration that 'hotprefix calibrate' wrote: {error}.") from error


assert {field.name for field in fields(Calibration)} == {"fingerprint", "source", *_ARRAYS}
