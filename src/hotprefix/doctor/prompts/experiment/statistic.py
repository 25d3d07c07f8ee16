"""The tests: each compares two samples and gives a difference, its interval and a p-value.

A difference is always that of the arm less the control. `scipy` has what is standard; the bootstrap of a
ratio is our own, for it has to draw units, not requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy import stats

from hotprefix.doctor.prompts.experiment.sample import Floats, Ratio

_DRAWS = 4_000
_MANY = 20_000
"""Units from which on a bootstrap says what the normal distribution says."""
_AT_ONCE = 2_000_000
_BISECTIONS = 100
_ENOUGH_EXPECTED = 5.0
_SAME = 1e-9
"""Parts of a value within which two are one: sums of equal numbers round differently."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a test found. `error` is the standard error of `difference`, 0 if there is none to speak of."""

    test: str
    difference: float
    low: float
    high: float
    p: float
    error: float


@dataclass(frozen=True, slots=True)
class Level:
    """`alpha` is the error that is allowed in intervals; `seed` makes bootstraps repeatable."""

    alpha: float = 0.05
    seed: int = 1


def rank_test(arm: Floats, control: Floats, level: Level) -> Outcome:
    """Mann–Whitney U, two-sided, with correction for ties; the difference is Hodges and Lehmann's: the
    median of all differences between one value of each. Its interval inverts the test."""
    found = stats.mannwhitneyu(arm, control, alternative="two-sided")
    pairs = len(arm) * len(control)
    spread = sqrt(pairs * (len(arm) + len(control) + 1) / 12)
    z = stats.norm.ppf(1 - level.alpha / 2)
    least = max(0, int(np.floor(pairs / 2 - z * spread)))
    low, high = (_nth_difference(arm, control, place) for place in (least, pairs - 1 - least))
    middle = _nth_difference(arm, control, (pairs - 1) // 2)
    if pairs % 2 == 0:
        middle = (middle + _nth_difference(arm, control, pairs // 2)) / 2
    return Outcome("Mann–Whitney U", middle, low, high, float(found.pvalue), (high - low) / (2 * z))


def mean_test(arm: Ratio, control: Ratio, level: Level) -> Outcome:
    """Welch's t for means that are near enough to normal, else the bootstrap of units.

    Which of them is decided by all values together, so that it can't favour an outcome: means of n values
    of skewness g are near to normal from n = 28 + 25 g² on (Sugden, Smith and Jones, 2000).
    """
    enough = 28 + 25 * _skewness(np.concatenate([arm.above, control.above])) ** 2
    spread = _standing(arm)[1] + _standing(control)[1]
    if spread <= _SAME * max(abs(arm.value), abs(control.value)):
        return _without_spread(arm, control)
    if arm.is_plain and control.is_plain and min(len(arm), len(control)) >= enough:
        return _welch(arm.above, control.above, level)
    return ratio_test(arm, control, level)


def ratio_test(arm: Ratio, control: Ratio, level: Level) -> Outcome:
    """Bootstrap-t of the difference of two ratios, drawing whole units; with very many units the normal
    distribution that it comes to."""
    found, center = _standing(arm), _standing(control)
    difference = found[0] - center[0]
    error = sqrt(found[1] ** 2 + center[1] ** 2)
    if error <= _SAME * max(abs(found[0]), abs(center[0])):
        return _without_spread(arm, control)
    z = stats.norm.ppf(1 - level.alpha / 2)
    if min(len(arm), len(control)) >= _MANY:
        p = 2 * stats.norm.sf(abs(difference) / error)
        return Outcome(
            "z of the ratio, by unit",
            difference,
            difference - z * error,
            difference + z * error,
            float(p),
            error,
        )
    rng = np.random.default_rng(level.seed)
    drawn = [_redrawn(ratio, rng) for ratio in (arm, control)]
    errors = np.sqrt(drawn[0][1] ** 2 + drawn[1][1] ** 2)
    moves = drawn[0][0] - drawn[1][0] - difference
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.abs(np.where(errors > 0, moves / errors, 0.0))
    p = (1 + np.count_nonzero(scores >= abs(difference) / error)) / (_DRAWS + 1)
    reach = float(np.quantile(scores, 1 - level.alpha)) * error
    return Outcome("bootstrap-t by unit", difference, difference - reach, difference + reach, float(p), error)


def share_test(arm: Ratio, control: Ratio, level: Level) -> Outcome:
    """Chi-square of two shares, its counts reduced by how alike the requests of a unit are (Rao and Scott,
    1992); Fisher's exact test where counts are small. The interval is Newcombe's, of Wilson's."""
    effect = _design_effect(arm, control)
    counts = np.array([[ratio.above.sum(), (ratio.below - ratio.above).sum()] for ratio in (arm, control)])
    counts = counts / effect
    difference = arm.value - control.value
    low, high = _newcombe(counts, level.alpha)
    error = (high - low) / (2 * stats.norm.ppf(1 - level.alpha / 2))
    if not counts.sum(axis=0).all():
        return Outcome("none: both shares are the same", difference, low, high, 1.0, error)
    if stats.contingency.expected_freq(counts).min() < _ENOUGH_EXPECTED:
        p = stats.fisher_exact(np.round(counts).astype(int)).pvalue
        return Outcome("Fisher's exact test", difference, low, high, float(p), error)
    p = stats.chi2_contingency(counts, correction=False).pvalue
    name = "chi-square" if effect == 1 else "chi-square, by Rao and Scott"
    return Outcome(name, difference, low, high, float(p), error)


def split_test(counts: Sequence[int], shares: Sequence[float]) -> float:
    """The p-value of a chi-square test that units fell into arms by their weights."""
    expected = np.asarray(shares) * sum(counts)
    return float(stats.chisquare(counts, expected).pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """p-values corrected for being several (Holm, 1979)."""
    order = sorted(range(len(values)), key=lambda place: values[place])
    corrected, largest = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(values) - rank) * values[place]))
        corrected[place] = largest
    return corrected


def detectable(error: float, alpha: float, power: float = 0.8) -> float:
    """The smallest difference that a test with this standard error finds with probability `power`."""
    return float((stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power)) * error)


def _skewness(values: Floats) -> float:
    """0 where all values are one, or as good as one."""
    rest = values - values.mean()
    spread = float(np.sqrt((rest**2).mean()))
    return float(((rest / spread) ** 3).mean()) if spread > 1e-12 * float(np.abs(values).max()) else 0.0


def _welch(arm: Floats, control: Floats, level: Level) -> Outcome:
    difference = float(arm.mean() - control.mean())
    error = sqrt(arm.var(ddof=1) / len(arm) + control.var(ddof=1) / len(control))
    found = stats.ttest_ind(arm, control, equal_var=False)
    interval = found.confidence_interval(1 - level.alpha)
    return Outcome(
        "Welch's t", difference, float(interval.low), float(interval.high), float(found.pvalue), error
    )


def _without_spread(arm: Ratio, control: Ratio) -> Outcome:
    """Arms within which every unit is like the others. Where they differ, it is tested whether chance could
    have put all units of one kind into one arm."""
    difference = arm.value - control.value
    if abs(difference) <= _SAME * max(abs(arm.value), abs(control.value)):
        return Outcome("none: no unit differs from another", 0.0, 0.0, 0.0, 1.0, 0.0)
    p = stats.fisher_exact([[len(arm), 0], [0, len(control)]]).pvalue
    return Outcome(
        "Fisher's exact test, of units alike within arms", difference, difference, difference, float(p), 0.0
    )


def _nth_difference(arm: Floats, control: Floats, place: int) -> float:
    """The difference at `place` of all len(arm) · len(control), sorted, without writing them down."""
    control = np.sort(control)
    low, high = float(arm.min() - control[-1]), float(arm.max() - control[0])
    for _ in range(_BISECTIONS):
        middle = low + (high - low) / 2
        if middle in (low, high):
            break
        # As many pairs lie at or below `middle` as values of the control at or above `arm - middle`.
        if np.sum(len(control) - np.searchsorted(control, arm - middle, "left")) > place:
            high = middle
        else:
            low = middle
    # What was halved down to lies within a rounding of the difference that is meant.
    nearest = np.searchsorted(control, arm - high, "left")
    inside = nearest < len(control)
    return float((arm[inside] - control[nearest[inside]]).max())


def _standing(ratio: Ratio) -> tuple[float, float]:
    """A ratio and its standard error, by linearisation over units."""
    n, below, value = len(ratio), ratio.below.sum(), ratio.value
    rest = ratio.above - value * ratio.below
    return value, float(sqrt(n / (n - 1) * (rest @ rest)) / below)


def _redrawn(ratio: Ratio, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Ratios and standard errors of `_DRAWS` samples of as many units, drawn with replacement."""
    n = len(ratio)
    values, errors = [], []
    step = max(1, _AT_ONCE // n)
    for start in range(0, _DRAWS, step):
        chosen = rng.integers(0, n, (min(step, _DRAWS - start), n))
        above, below = ratio.above[chosen], ratio.below[chosen]
        total = below.sum(axis=1)
        value = above.sum(axis=1) / total
        rest = above - value[:, None] * below
        values.append(value)
        errors.append(np.sqrt(n / (n - 1) * np.einsum("ij,ij->i", rest, rest)) / total)
    return np.concatenate(values), np.concatenate(errors)


def _design_effect(*ratios: Ratio) -> float:
    """How many times the variance of shares is what independent requests would give; at least 1."""
    if all(ratio.is_plain for ratio in ratios):
        return 1.0
    together = alone = 0.0
    for ratio in ratios:
        share, error = _standing(ratio)
        together += error**2
        alone += share * (1 - share) / ratio.below.sum()
    return max(1.0, together / alone) if alone > 0 else 1.0


def _newcombe(counts: np.ndarray[tuple[int, int], np.dtype[np.float64]], alpha: float) -> tuple[float, float]:
    """Interval of a difference of shares (Newcombe, 1998, method 10)."""
    z = float(stats.norm.ppf(1 - alpha / 2))
    ends = []
    for hits, rest in counts:
        n, share = hits + rest, hits / (hits + rest)
        middle = (share + z * z / (2 * n)) / (1 + z * z / n)
        reach = z * sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        ends.append((share, middle - reach, middle + reach))
    (one, one_low, one_high), (two, two_low, two_high) = ends
    low = one - two - sqrt((one - one_low) ** 2 + (two_high - two) ** 2)
    high = one - two + sqrt((one_high - one) ** 2 + (two - two_low) ** 2)
    return float(low), float(high)
