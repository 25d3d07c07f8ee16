"""What cached tokens are worth, judged by their keys and values alone."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.errors import ModelError
from hotprefix.cache.recut import Places
from hotprefix.pages.rotary import Rotary

Floats = NDArray[np.float32]
_TINY = np.float32(1e-12)


class Scorer(Protocol):
    """Judges tokens. Only the order within a layer and the spread between tokens mean something."""

    def score(self, keys: Floats, values: Floats, positions: Places) -> Floats:
        """Importance [layers, tokens]; more is better.

        `keys` as cached (rotated to `positions`, their places in the cache) and `values` are
        [layers, kv heads, tokens, head size].
        """
        ...


class KeyDiffScorer:
    """A token is worth more the less its key points where all keys point.

    Source: KeyDiff (arXiv 2504.15364), as in NVIDIA's kvpress: minus the cosine to the mean direction.
    """

    def score(self, keys: Floats, values: Floats, positions: Places) -> Floats:
        directions = keys / np.maximum(np.linalg.norm(keys, axis=-1, keepdims=True), _TINY)
        anchor = directions.mean(axis=2, keepdims=True)
        anchor /= np.maximum(np.linalg.norm(anchor, axis=-1, keepdims=True), _TINY)
        score: Floats = -np.einsum("lhtd,lhd->lt", directions, anchor[:, :, 0], optimize=True)
        return score / np.float32(keys.shape[1])


class NormScorer:
    """A token is worth more the shorter its keys are (Devoto et al., arXiv 2406.11430)."""

    def score(self, keys: Floats, values: Floats, positions: Places) -> Floats:
        norms: Floats = -np.linalg.norm(keys, axis=-1).mean(axis=1)
        return norms


class LinearScorer:
    """One linear function a layer, learned from what attention did with tokens of a text.

    `weights` [layers, features] and `biases` [layers], over features = the un-rotated keys of all heads,
    then the values of all heads.
    """

    def __init__(self, weights: Floats, biases: Floats, rotary: Rotary) -> None:
        self._weights = weights
        self._biases = biases
        self._rotary = rotary

    def score(self, keys: Floats, values: Floats, positions: Places) -> Floats:
        layers, heads, tokens, size = keys.shape
        plain = self._rotary.rotated(keys, -positions)
        features = np.concatenate((plain, values), axis=1).swapaxes(1, 2).reshape(layers, tokens, -1)
        if features.shape[::2] != self._weights.shape:
            raise ModelError(
                f"the scorer was calibrated for {self._weights.shape[0]} layers of {self._weights.shape[1]} "
                f"features, this model has {layers} of {2 * heads * size}: run 'hotprefix calibrate' for it"
            )
        score: Floats = np.einsum("ltf,lf->lt", features, self._weights, optimize=True)
        return score + self._biases[:, None]


def read_scorer(path: Path, rotary: Rotary) -> LinearScorer:
    """The scorer in a `.npz` file of `hotprefix calibrate`: arrays `w` and `b`. Raises `ModelError`."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            weights, biases = arrays["w"].astype(np.float32), arrays["b"].astype(np.float32)
    except OSError as error:
        raise ModelError(
            f"{path} can't be read: {error.strerror or error}. 'hotprefix calibrate' writes one."
        ) from error
    except (ValueError, KeyError, EOFError, BadZipFile) as error:
        # NumPy's own words advise to load it unsafely.
        raise ModelError(f"{path} is no scorer that 'hotprefix calibrate' wrote.") from error
    if weights.ndim != 2 or biases.shape != weights.shape[:1] or not np.isfinite(weights).all():
        raise ModelError(f"{path} holds a broken scorer: run 'hotprefix calibrate' again")
    return LinearScorer(weights, biases, rotary)


def make_scorer(judge: str, rotary: Rotary) -> Scorer:
    """The scorer of that name, or from that file. Under `attention`, what no pass has looked at yet is
    judged by KeyDiff. Raises `ModelError`."""
    if judge == "norm":
        return NormScorer()
    if judge in ("keydiff", "attention"):
        return KeyDiffScorer()
    return read_scorer(Path(judge), rotary)
