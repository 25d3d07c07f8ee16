"""Which arm a unit gets: by hash, the same every time and everywhere, and close to it when weights change.

Weighted rendezvous hashing: every arm draws a number for the unit, exponential with its weight as rate, and
the smallest wins. With two arms exactly those units move that a change of weights demands, and an arm whose
weight alone changes only gives or takes. With more arms no rule that remembers nothing can do without some
movement; this one moves at most 2 d / (1 + d) of the units where the shares differ by d in total variation,
which is the least that can be promised (Moulton and Jiang, "Maximally consistent sampling and the Jaccard
index of probability distributions", 2018).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from hashlib import blake2b

_STEPS = 1 << 53


def arm_of(unit: str, arms: Mapping[str, float], salt: str) -> str:
    """The arm of `unit`; arms of weight 0 get nobody."""
    return min(
        (arm for arm, weight in arms.items() if weight > 0),
        key=lambda arm: (-math.log(_draw(salt, arm, unit)) / arms[arm], arm),
    )


def moved(units: Iterable[str], before: Mapping[str, float], after: Mapping[str, float], salt: str) -> int:
    """How many of `units` another weighting gives another arm."""
    return sum(arm_of(unit, before, salt) != arm_of(unit, after, salt) for unit in units)


def _draw(salt: str, arm: str, unit: str) -> float:
    """Uniform on (0, 1], by hash; every part goes in with its length, so that no two can be mixed up."""
    digest = blake2b(digest_size=8, person=b"hotprefix split")
    for part in (salt, arm, unit):
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    return ((int.from_bytes(digest.digest(), "little") >> 11) + 1) / _STEPS
