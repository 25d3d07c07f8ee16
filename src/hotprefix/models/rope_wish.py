"""A scaling of positions that the operator asks for, where the model has none of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hotprefix.base.errors import UnsupportedModel
from hotprefix.models.files import sha256_of
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.rope import RopeKind, RopeScaling, yarn_attention_factor

_KINDS = (RopeKind.LINEAR, RopeKind.NTK, RopeKind.YARN)
_MOST = 1024.0


@dataclass(frozen=True, slots=True)
class RopeWish:
    """Serve texts `factor` times as long as the model was trained on."""

    kind: RopeKind
    factor: float

    @classmethod
    def parse(cls, text: str) -> RopeWish:
        """`linear:2`, `ntk:2` or `yarn:4`. Raises `ValueError` saying what is wrong."""
        name, colon, number = text.strip().partition(":")
        names = [kind.value for kind in _KINDS]
        if name not in names or not colon:
            raise ValueError(f"{text!r} is not KIND:FACTOR with a kind of {', '.join(names)}, as in yarn:4")
        try:
            factor = float(number)
        except ValueError:
            factor = math.nan
        if not 1.0 < factor <= _MOST:
            raise ValueError(f"{number!r} is no factor: a number above 1, at most {_MOST:.0f}")
        return cls(RopeKind(name), factor)

    def __str__(self) -> str:
        return f"{self.kind.value}:{self.factor:g}"

    def applied_to(self, manifest: ModelManifest) -> ModelManifest:
        """`manifest` with this scaling, a context as much longer, and a fingerprint of its own.

        Raises `UnsupportedModel` if the model has a scaling, or does not say how it turns positions.
        """
        if len(manifest.ropes) != 1:
            raise UnsupportedModel(
                f"{manifest.name} can't be scaled: its files don't tell of one rotary embedding for all "
                "layers; leave --rope-scaling out"
            )
        (rope,) = manifest.ropes
        if rope.scaling is not None:
            raise UnsupportedModel(
                f"{manifest.name} is scaled already, by {rope.scaling.kind.value!r}, to "
                f"{rope.context_length:,} tokens; leave --rope-scaling out"
            )
        attention = yarn_attention_factor(self.factor) if self.kind is RopeKind.YARN else 1.0
        scaling = RopeScaling(self.kind, self.factor, attention_factor=attention)
        context = math.floor(manifest.context_length * self.factor)
        scaled = replace(
            rope, trained_length=manifest.context_length, context_length=context, scaling=scaling
        )
        return replace(
            manifest,
            context_length=context,
            fingerprint=sha256_of([("model", manifest.fingerprint), ("rope", scaled.describe())]),
            ropes=(scaled,),
        )
