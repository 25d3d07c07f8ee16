"""What a request used, as every dialect's usage object is derived from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.engine.request import Usage
from hotprefix.modes.classes import Mode, TokenClasses


@dataclass(frozen=True, slots=True)
class Bill:
    """`usage` is what the engine did, in truth; `classes` what the profile says of it."""

    usage: Usage
    classes: TokenClasses


def summed(classes: Sequence[TokenClasses]) -> TokenClasses:
    """Several prompts of one request in one bill; their mode is the first one's."""
    written: dict[str, int] = {}
    for one in classes:
        for ttl, count in one.written.items():
            written[ttl] = written.get(ttl, 0) + count
    return TokenClasses(
        mode=classes[0].mode if classes else Mode.NONE,
        computed=sum(one.computed for one in classes),
        read=sum(one.read for one in classes),
        written=written,
        free=sum(one.free for one in classes),
        output=sum(one.output for one in classes),
    )
