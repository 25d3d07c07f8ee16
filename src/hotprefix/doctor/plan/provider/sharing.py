"""Where the prompts of a trace part, and so where markers should stand: known with hindsight."""

from __future__ import annotations

from collections.abc import Sequence

from hotprefix.base.ids import BlockKey
from hotprefix.traces.request import TraceRequest

_CANDIDATES = 12


class Sharing:
    """How many requests begin with each prefix of the trace."""

    def __init__(self, block: int) -> None:
        self._block = block
        self._counts: dict[BlockKey, int] = {}

    def note(self, request: TraceRequest) -> None:
        """Count one request."""
        counts = self._counts
        for key in request.keys:
            counts[key] = counts.get(key, 0) + 1

    def places(self, request: TraceRequest, most: int, minimum: int) -> list[int]:
        """Up to `most` numbers of blocks, best first, behind which a marker serves other requests too.

        A place is good where requests part: each token before it is worth as many readers as have the
        shortest marked prefix with it in common. Tokens before `minimum` make no entry.
        """
        counts = [self._counts[key] for key in request.keys]
        parting = [
            place
            for place in range(1, len(counts) + 1)
            if counts[place - 1] > 1
            and (place == len(counts) or counts[place] < counts[place - 1])
            and place * self._block >= minimum
        ]
        parting.sort(key=lambda place: -place * (counts[place - 1] - 1))
        candidates = parting[:_CANDIDATES]
        chosen: list[int] = []
        for _ in range(min(most, len(candidates))):
            best = max(candidates, key=lambda place: _worth([*chosen, place], counts))
            if _worth([*chosen, best], counts) <= _worth(chosen, counts):
                break
            chosen.append(best)
            candidates.remove(best)
        return chosen


def _worth(places: Sequence[int], counts: Sequence[int]) -> int:
    """Blocks that other requests read, if all of them find every entry."""
    total = before = 0
    for place in sorted(places):
        total += (place - before) * (counts[place - 1] - 1)
        before = place
    return total
