"""The rules by which precision, chunk size and threads are chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hotprefix.tune.candidate import Candidate
from hotprefix.tune.decision import Basis, Decision
from hotprefix.tune.kv_bytes import least_bits
from hotprefix.tune.machine import Machine
from hotprefix.tune.presets import Preset
from hotprefix.tune.quality_notes import QualityNotes
from hotprefix.tune.speed import Speed
from hotprefix.tune.wish import Goal, Need

_FASTER = {Goal.LATENCY: 1.05, Goal.BALANCED: 1.1, Goal.MEMORY: 1.1}
"""How much faster something must be to be taken instead of the preset's."""
_ALIKE = 1.03
"""Times this near each other are the same within the noise."""
_NEAR_BEST = {Goal.LATENCY: 0.95, Goal.BALANCED: 0.95, Goal.MEMORY: 0.9}
"""Share of the best prefill speed that a chunk size must have."""
_ROOMY = 2
_BUSY = 1.25
"""On a machine that others keep busy, smaller differences than this are chance."""


class PrecisionRule:
    """The preset's precision, unless the room, the wish or a measurement says otherwise."""

    def __init__(
        self,
        found: Sequence[Candidate],
        preset: Preset,
        need: Need,
        goal: Goal,
        notes: QualityNotes,
        machine: Machine,
    ) -> None:
        self._found = found
        self._preset = preset
        self._need = need
        self._goal = goal
        self._faster = max(_FASTER[goal], _BUSY) if machine.is_busy else _FASTER[goal]
        # Below 8 bits the loss depends on the model: only for memory's sake, or where a card vouches for it.
        self._trusted = [one for one in found if least_bits(one.precision) >= 8 or _is_vouched(one, notes)]

    def choose(self, *, movable: bool) -> tuple[Candidate, Decision]:
        """`movable` keys are needed by strategies that cut caches: 16 bits then."""
        exact, start = self._found[0], self._start()
        if movable:
            why = "strategies that cut caches turn cached keys, which need 16 bits"
            return exact, self._decision(exact, why, Basis.ASKED)
        if self._goal is Goal.MEMORY:
            return self._smallest()
        if not start.fits(self._need):
            return self._fitting(start)
        fastest = min(self._fitting_trusted(), key=lambda one: one.seconds or float("inf"))
        if start.seconds and fastest.seconds and start.seconds > fastest.seconds * self._faster:
            why = f"one request takes {fastest.seconds:.1f} s, with {start.precision} {start.seconds:.1f} s"
            return fastest, self._decision(fastest, why, Basis.MEASURED)
        if not start.exact and self._costs_nothing(exact, start):
            why = (
                f"room for {exact.at_once} requests of {self._need.context:,} tokens, and no slower than "
                f"{start.precision}: nothing is lost"
            )
            return exact, self._decision(exact, why, Basis.MEASURED)
        why = self._preset.why
        if start.seconds is not None:
            why += f"; nothing that fits is more than {self._faster - 1:.0%} faster"
        return start, self._decision(start, why, Basis.PRESET)

    def _start(self) -> Candidate:
        """The preset's, or what comes nearest to it among those that the model can have."""
        for one in self._found:
            if one.precision == self._preset.precision:
                return one
        return self._found[0]

    def _fitting_trusted(self) -> list[Candidate]:
        return [one for one in self._trusted if one.fits(self._need)]

    def _costs_nothing(self, exact: Candidate, start: Candidate) -> bool:
        if exact.tokens < _ROOMY * self._need.tokens or not exact.seconds or not start.seconds:
            return False
        return exact.seconds <= start.seconds * _ALIKE

    def _smallest(self) -> tuple[Candidate, Decision]:
        smallest = min(self._trusted, key=lambda one: one.bytes_per_token)
        if not smallest.fits(self._need):
            smaller = [one for one in self._found if one.fits(self._need)]
            if smaller:
                why = f"{smallest.precision} has no room for {self._need.tokens:,} tokens"
                return smaller[0], self._decision(smaller[0], why, Basis.ASKED)
        why = f"fewest bytes per token ({smallest.bytes_per_token:,.0f}) of those that are trusted"
        return smallest, self._decision(smallest, why, Basis.ASKED)

    def _fitting(self, start: Candidate) -> tuple[Candidate, Decision]:
        """The most exact that has room; if none has, the smallest, and some requests wait."""
        fitting = self._fitting_trusted()
        chosen = fitting[0] if fitting else min(self._trusted, key=lambda one: one.bytes_per_token)
        why = (
            f"{start.precision} has room for {start.tokens:,} tokens, not for the "
            f"{self._need.tokens:,} of {self._need.concurrency} requests"
        )
        if chosen is start:
            return start, self._decision(start, f"{why}; nothing trusted is smaller", Basis.PRESET)
        return chosen, self._decision(chosen, why, Basis.ASKED)

    def _decision(self, chosen: Candidate, why: str, basis: Basis) -> Decision:
        if basis is not Basis.PRESET and chosen.precision != self._preset.precision:
            why += f"; {self._preset.why}: {self._preset.precision}"
        return Decision("kv-precision", chosen.precision, why, basis)


def _is_vouched(candidate: Candidate, notes: QualityNotes) -> bool:
    note = notes.precision(candidate.precision)
    return note is not None and note.is_good


def choose_chunk(
    by_chunk: Mapping[int, float], preset: Preset, goal: Goal, need: Need, machine: Machine
) -> Decision:
    """The preset's chunk while it is near the best; else the smallest that is, since a step's end is when
    others get in. For latency and memory the smallest from the start."""
    fitting = {chunk: speed for chunk, speed in by_chunk.items() if chunk <= max(need.context, min(by_chunk))}
    if not fitting:
        return Decision("prefill-chunk", preset.chunk, preset.why, Basis.PRESET)
    share = min(_NEAR_BEST[goal], 1 / _BUSY) if machine.is_busy else _NEAR_BEST[goal]
    best = max(fitting, key=lambda chunk: fitting[chunk])
    near = min(chunk for chunk in fitting if fitting[chunk] >= share * fitting[best])
    measured = ", ".join(f"{chunk}: {speed:,.0f}" for chunk, speed in sorted(fitting.items()))
    told = f"prefill tokens/s by chunk {measured}"
    wanted = fitting.get(preset.chunk, 0.0)
    if near == preset.chunk or (goal is Goal.BALANCED and wanted >= share * fitting[best]):
        return Decision("prefill-chunk", preset.chunk, f"{preset.why}; {told}", Basis.PRESET)
    why = f"the smallest within {1 - share:.0%} of the best; {told}; {preset.why}: {preset.chunk}"
    return Decision("prefill-chunk", near, why, Basis.MEASURED)


def choose_threads(by_threads: Mapping[int, Speed], machine: Machine, need: Need) -> Decision:
    """The fewest threads with which a request is as fast as with the best. On a machine that others keep busy
    a measurement would say how many cores they leave, so there it is all cores."""
    cores = machine.cores
    if not by_threads or machine.is_busy:
        why = f"cores that this process may use, by {cores.bounded_by}"
        return Decision("threads", cores.usable, why, Basis.MACHINE)
    times = {count: need.seconds(speed.prefill, speed.decode) for count, speed in by_threads.items()}
    least = min(times.values())
    chosen = min(count for count, seconds in times.items() if seconds <= least * _ALIKE)
    told = ", ".join(f"{count}: {seconds:.1f}" for count, seconds in sorted(times.items()))
    return Decision("threads", chosen, f"seconds of one request by threads {told}", Basis.MEASURED)
