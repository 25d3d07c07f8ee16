"""What a trace holds, and what a cache without limits would find in it."""

from __future__ import annotations

from dataclasses import dataclass

from hotprefix.traces.batch import Batch
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


class Surveyor:
    """Adds a trace up as it goes by."""

    def __init__(self, source: TraceSource) -> None:
        self._source = source
        self._first: float | None = None
        self._last = 0.0
        self._requests = self._blocks = self._ideal = 0
        self._tokens = self._ideal_tokens = self._output = 0

    def note(self, batch: Batch) -> None:
        """Add some requests."""
        if self._first is None:
            self._first = batch.heads[0][0]
        self._last = batch.heads[-1][0]
        self._requests += len(batch.heads)
        self._blocks += sum(batch.lengths)
        self._ideal += sum(batch.known)
        size = self._source.block_size
        for (_, _, prompt, answer), known in zip(batch.heads, batch.known, strict=True):
            self._tokens += prompt
            self._ideal_tokens += min(known * size, prompt)
            self._output += answer

    def survey(self) -> Survey:
        """What went by. Raises `BrokenTrace` if that was nothing."""
        if self._first is None:
            raise BrokenTrace(f"{self._source.files[0]} has no request in it.")
        # A block that is not part of a prefix seen before is new: keys are chained.
        return Survey(
            self._requests,
            self._last - self._first,
            self._blocks,
            self._blocks - self._ideal,
            self._ideal,
            self._tokens,
            self._ideal_tokens,
            self._output,
        )


def survey(source: TraceSource, advance: Advance = nothing) -> Survey:
    """Read a trace once. Raises `BrokenTrace`, also if there is no request in it."""
    surveyor = Surveyor(source)
    for batch in source.batches(advance):
        surveyor.note(batch)
    return surveyor.survey()
