"""What arms are compared by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hotprefix.doctor.prompts.experiment.sample import Sample
from hotprefix.doctor.prompts.experiment.statistic import (
    Level,
    Outcome,
    mean_test,
    rank_test,
    ratio_test,
    share_test,
)


class Better(StrEnum):
    """Which way is an improvement."""

    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True)
class Metric:
    """`value` of one arm, `count` of its units that have one, and `test` of two arms.

    `unit` is `s`, `%` (of a share), a currency, or empty.
    """

    name: str
    title: str
    unit: str
    better: Better
    value: Callable[[Sample], float]
    count: Callable[[Sample], int]
    test: Callable[[Sample, Sample, Level], Outcome]


def first_token() -> Metric:
    """Time to the first token; a unit with several requests counts once, by its median."""
    return Metric(
        "first_token",
        "time to first token (median)",
        "s",
        Better.LOWER,
        lambda sample: float(np.median(sample.medians("first_token"))),
        lambda sample: len(sample.medians("first_token")),
        lambda arm, control, level: rank_test(
            arm.medians("first_token"), control.medians("first_token"), level
        ),
    )


def hit_rate() -> Metric:
    """Prompt tokens read from the cache, of all prompt tokens."""
    return Metric(
        "hit_rate",
        "hit rate, in tokens",
        "%",
        Better.HIGHER,
        lambda sample: sample.ratio("read", "prompt").value,
        lambda sample: len(sample.ratio("read", "prompt")),
        lambda arm, control, level: ratio_test(
            arm.ratio("read", "prompt"), control.ratio("read", "prompt"), level
        ),
    )


def mean(name: str, title: str, unit: str, better: Better) -> Metric:
    """A quantity per request, in the column `name`."""
    return Metric(
        name,
        title,
        unit,
        better,
        lambda sample: sample.ratio(name).value,
        lambda sample: len(sample.ratio(name)),
        lambda arm, control, level: mean_test(arm.ratio(name), control.ratio(name), level),
    )


def share(name: str, title: str) -> Metric:
    """The share of requests for which the column `name` is true; fewer is better."""
    return Metric(
        name,
        title,
        "%",
        Better.LOWER,
        lambda sample: sample.ratio(name).value,
        lambda sample: len(sample.ratio(name)),
        lambda arm, control, level: share_test(arm.ratio(name), control.ratio(name), level),
    )
