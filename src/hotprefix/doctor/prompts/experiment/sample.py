"""What one arm did, by unit: the session, user or request that got its version by the split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A quantity per something, by unit: `above` and `below` are sums over the requests of a unit."""

    above: Floats
    below: Floats

    @property
    def value(self) -> float:
        """The ratio of the sums."""
        return float(self.above.sum() / self.below.sum())

    @property
    def is_plain(self) -> bool:
        """Whether every unit is one request, so that this is a mean."""
        return bool(np.all(self.below == 1))

    def __len__(self) -> int:
        return len(self.above)


@dataclass(frozen=True, slots=True)
class Sample:
    """The calls of one arm."""

    arm: str
    calls: pl.DataFrame

    @property
    def requests(self) -> int:
        """Requests, failed ones included."""
        return self.calls.height

    @property
    def units(self) -> int:
        """Units with a request."""
        return self.calls["unit"].n_unique()

    def medians(self, column: str) -> Floats:
        """The median of each unit that has a value."""
        found = (
            self.calls.drop_nulls(column).group_by("unit", maintain_order=True).agg(pl.col(column).median())
        )
        return found[column].to_numpy().astype(np.float64)

    def ratio(self, above: str, below: str | None = None) -> Ratio:
        """Sums of two columns by unit, over requests that have both; `below` None counts the requests."""
        known = self.calls.drop_nulls(above if below is None else [above, below])
        counted = pl.len() if below is None else pl.col(below).sum()
        found = known.group_by("unit", maintain_order=True).agg(above=pl.col(above).sum(), below=counted)
        kept = found.filter(pl.col("below") > 0)
        return Ratio(kept["above"].to_numpy().astype(np.float64), kept["below"].to_numpy().astype(np.float64))


def samples_of(calls: pl.DataFrame, arms: tuple[str, ...]) -> tuple[dict[str, Sample], int]:
    """The sample of each arm, and how many units had requests of more than one and are left out."""
    chosen = calls.filter(pl.col("prompt_version").is_in(arms))
    mixed = (
        chosen.group_by("unit")
        .agg(pl.col("prompt_version").n_unique().alias("arms"))
        .filter(pl.col("arms") > 1)
    )
    pure = chosen.join(mixed, on="unit", how="anti") if mixed.height else chosen
    return {arm: Sample(arm, pure.filter(pl.col("prompt_version") == arm)) for arm in arms}, mixed.height
