"""What a trace holds, and what a cache without limits would find in it."""

from __future__ import annotations

from dataclasses import dataclass

from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.lines import Advance, nothing
from hotprefix.traces.source import TraceSource


@dataclass(frozen=True, slots=True)
class Survey:
    """Sums over a trace; `seconds` from its first request to its last.

    `unique` is exact but for the errors of `SeenKeys`: what all its blocks would take.
    """

    requests: int
    seconds: float
    blocks: int
    unique: int
    ideal_blocks: int
    tokens: int
    ideal_tokens: int
    output: int

    @property
    def ideal_block_rate(self) -> float:
        """Share of blocks that came before as part of the same prefix."""
        return self.ideal_blocks / self.blocks if self.blocks else 0.0

    @property
    def ideal_token_rate(self) -> float:
        """The same in tokens."""
        return self.ideal_tokens / self.tokens if self.tokens else 0.0


def survey(source: TraceSource, advance: Advance = nothing) -> Survey:
    """Read a trace once. Raises `BrokenTrace`, also if there is no request in it."""
    requests = blocks = ideal = tokens = ideal_tokens = output = 0
    first = last = None
    size = source.block_size
    for request in source.requests(advance):
        first = request.at if first is None else first
        last = request.at
        requests += 1
        blocks += len(request.keys)
        ideal += request.known
        tokens += request.input
        ideal_tokens += min(request.known * size, request.input)
        output += request.output
    if first is None or last is None:
        raise BrokenTrace(f"{source.files[0]} has no request in it.")
    # A block that is not a prefix seen before is new: keys are chained.
    return Survey(requests, last - first, blocks, blocks - ideal, ideal, tokens, ideal_tokens, output)
