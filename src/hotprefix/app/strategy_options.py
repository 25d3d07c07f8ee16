"""Options of `hotprefix serve` for how a request uses the arena."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from hotprefix.engine.strategy.choice import StrategyName

_PANEL = "KV strategy"


def _option(text: str, **more: Any) -> Any:
    return typer.Option(rich_help_panel=_PANEL, help=text, **more)


KvStrategyName = Annotated[
    StrategyName,
    _option("How a request uses the arena where it does not say: static, dynamic, window or mixed."),
]
KvWindow = Annotated[
    int | None,
    _option("Most tokens of a request in the arena under window and mixed. Default: 2048.", min=1),
]
KvSinks = Annotated[int, _option("First tokens that always stay.", min=0)]
KvKeys = Annotated[
    float | None,
    _option(
        "Share of the window for older tokens that stay for their score. Default: 0.25 where attention or a "
        "calibrated scorer judges, else 0.",
        min=0,
        max=0.25,
    ),
]
KvRecent = Annotated[int, _option("Last tokens that mixed never judges.", min=0)]
KvScorer = Annotated[
    str,
    _option(
        "Who judges tokens: attention, keydiff, norm, or a file of 'hotprefix calibrate'. auto: attention if "
        "--kv-strategy is window or mixed, else keydiff."
    ),
]
KvLongest = Annotated[
    int, _option("Most tokens of prompt and answer under window and mixed.", min=256, max=2**24)
]
