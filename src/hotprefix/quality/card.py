"""The quality card: what was measured, in a form that tables, plots and JSON are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from hotprefix.quality.summary import Summary


class Group(StrEnum):
    """What the lines of a card compare with each other."""

    FLOOR = "noise floor"
    CODEC = "storage codec"
    PRECISION = "arena precision"
    STRATEGY = "sequence strategy"
    SERVED = "as served"


@dataclass(frozen=True, slots=True)
class Needles:
    """Of `asked` questions that the uncompressed model answered rightly, how many still were."""

    found: int
    asked: int


@dataclass(frozen=True, slots=True)
class Line:
    """One treatment of the cache. `bytes_per_token` is None where nothing is stored."""

    name: str
    group: Group
    summary: Summary
    bytes_per_token: float | None = None
    ratio: float | None = None
    needles: Needles | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target with what was found; `is_met` None: this run does not judge it."""

    name: str
    found: str
    is_met: bool | None


@dataclass(frozen=True, slots=True)
class Card:
    """Everything that one run found. `raw_bytes_per_token` are those of 16-bit KV; `unsolved` are questions
    that the model could not answer even uncompressed; `left_out` is what could not be measured, and why."""

    model: str
    command: str
    environment: str
    date: str
    about: str
    raw_bytes_per_token: float
    lines: tuple[Line, ...]
    verdicts: tuple[Verdict, ...] = ()
    unsolved: int = 0
    left_out: tuple[str, ...] = ()

    def line(self, name: str, group: Group = Group.CODEC) -> Line | None:
        """The line of that name, if there is one."""
        return next((line for line in self.lines if (line.name, line.group) == (name, group)), None)

    def to_json(self) -> dict[str, Any]:
        """All of it, as plain data."""
        return asdict(self)


def verdicts_of(lines: Sequence[Line], is_judged: bool) -> tuple[Verdict, ...]:
    """What storage codecs are held to."""
    by_name = {line.name: line for line in lines if line.group is Group.CODEC}
    verdicts: list[Verdict] = []

    def judge(name: str, found: str, is_met: bool) -> None:
        verdicts.append(Verdict(name, found, is_met if is_judged else None))

    int8, layered, mixed = by_name.get("int8"), by_name.get("layered"), by_name.get("mixed")
    if int8 is not None:
        kl, top = int8.summary.kl_mean.value, int8.summary.same_top.value
        judge("int8: mean KL at most 5e-4", f"{kl:.1e}", kl <= 5e-4)
        judge("int8: same top token at least 99 %", f"{top:.2%}", top >= 0.99)
        judge("int8: at least 1.9 times smaller", f"{int8.ratio or 0:.3f}", (int8.ratio or 0) >= 1.9)
    if layered is not None:
        judge(
            "layered: at least 1.75 times smaller", f"{layered.ratio or 0:.3f}", (layered.ratio or 0) >= 1.75
        )
        if int8 is not None:
            pair = (layered.summary.kl_mean.value, int8.summary.kl_mean.value)
            judge("layered: KL no worse than int8", f"{pair[0]:.1e} and {pair[1]:.1e}", pair[0] <= pair[1])
    if mixed is not None:
        ppl = mixed.summary.ppl_ratio.value - 1
        judge("mixed: at least 3 times smaller", f"{mixed.ratio or 0:.3f}", (mixed.ratio or 0) >= 3)
        judge("mixed: perplexity at most +0.5 %", f"{ppl:+.2%}", ppl <= 0.005)
        rivals = [line for line in by_name.values() if line.name in UNIFORM]
        for rival in rivals:
            judge(*_against(mixed, rival))
    return tuple(verdicts)


UNIFORM = frozenset({"int4", "uniform"})
"""Lines that give all tokens the same bits."""


def _against(mixed: Line, rival: Line) -> tuple[str, str, bool]:
    ours, theirs = mixed.summary.kl_mean.value, rival.summary.kl_mean.value
    is_small = (mixed.bytes_per_token or 0) <= (rival.bytes_per_token or 0)
    found = f"KL {ours:.1e} at {mixed.bytes_per_token:,.0f} B, {theirs:.1e} at {rival.bytes_per_token:,.0f} B"
    return f"mixed: better than {rival.name} at no more bytes", found, is_small and ours <= theirs
