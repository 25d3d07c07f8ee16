"""How a server uses its arena where a request says nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from hotprefix.engine.strategy.choice import StrategyName

DEFAULT_WINDOW = 2048
LONGEST = 131_072


@dataclass(frozen=True, slots=True)
class StrategySettings:
    """`window` None is `DEFAULT_WINDOW`, or less where context or arena are small. `keys` None is a quarter
    of the window if tokens are judged by attention or by a calibrated scorer, else nothing.

    `longest` bounds, in tokens, prompt and answer of a sequence that is cut. `scorer` is `auto`,
    `attention`, `keydiff`, `norm`, or the path of a file that `hotprefix calibrate` wrote; `auto` is
    `attention` where `name` cuts sequences, else `keydiff`, which costs nothing until it is needed.
    `experts` and `capacity` are the router's.
    """

    name: StrategyName = StrategyName.DYNAMIC
    window: int | None = None
    sinks: int = 4
    keys: float | None = None
    recent: int = 64
    longest: int = LONGEST
    scorer: str = "auto"
    experts: int = 8
    capacity: float = 1.2

    @property
    def judge(self) -> str:
        """`scorer`, with `auto` settled."""
        if self.scorer == "auto":
            return "attention" if self.name.cuts else "keydiff"
        return self.scorer
