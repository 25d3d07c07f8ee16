"""How much is measured, and what."""

from __future__ import annotations

from dataclasses import dataclass

CODECS = ("raw", "int8", "layered", "int4", "fp8", "uniform", "mixed")
"""Lines that a card has unless others are asked for; `uniform` is `mixed` without its router."""

PRECISIONS = ("u8", "u4", "layered-u8", "layered-u4")

STRATEGIES = ("window", "mixed")

QUESTION = 64
"""Most tokens of a question about a needle."""


@dataclass(frozen=True, slots=True)
class QualitySizes:
    """`documents` are prefilled up to `prefix` tokens, and the next `scored` are predicted. `haystacks` are
    texts of `prefix` tokens with facts in them."""

    documents: int = 8
    prefix: int = 1536
    scored: int = 384
    haystacks: int = 3

    @property
    def length(self) -> int:
        """Tokens of a document: the last one is only predicted."""
        return self.prefix + self.scored + 1

    @property
    def longest(self) -> int:
        """The most tokens that a model has to take at once."""
        return max(self.length, self.prefix + QUESTION)


QUICK_QUALITY = QualitySizes(documents=2, prefix=512, scored=128, haystacks=1)


@dataclass(frozen=True, slots=True)
class CalibrationSizes:
    """`documents` of `tokens` tokens are observed, routers learning from the first three quarters of each;
    with `judged` of them layers are measured."""

    documents: int = 24
    tokens: int = 1024
    judged: int = 2


QUICK_CALIBRATION = CalibrationSizes(documents=4, tokens=512, judged=1)
