"""Why a prompt is on the review list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Due(StrEnum):
    """Reasons, the most urgent first."""

    EDITED = "edited after release"
    MODEL_RETIRED = "model retired"
    MODEL_UNSUPPORTED = "model without this cache"
    BELOW_MINIMUM = "below the minimum"
    HIT_RATE_FELL = "hit rate fell"
    LINT = "lint finding"
    RETIRED_IN_USE = "retired version in use"
    UNREGISTERED = "version not registered"
    NOT_REVIEWED = "not reviewed"
    EXPERIMENT_OLD = "experiment runs long"
    PROFILE_SUPERSEDED = "rules superseded"
    UNUSED = "not used"
    NO_OWNER = "no owner"

    @property
    def is_urgent(self) -> bool:
        """Whether it costs money or is wrong today, rather than merely old."""
        return _ORDER.index(self) < _ORDER.index(Due.RETIRED_IN_USE)

    @property
    def rank(self) -> int:
        """Smaller is more urgent."""
        return _ORDER.index(self)


_ORDER = tuple(Due)


@dataclass(frozen=True, slots=True)
class DueItem:
    """One reason for one version, or for the whole prompt where `version` is empty."""

    prompt: str
    version: str
    due: Due
    why: str
    owner: str = ""

    @property
    def label(self) -> str:
        """`name@version`, or the name."""
        return f"{self.prompt}@{self.version}" if self.version else self.prompt


@dataclass(frozen=True, slots=True)
class ReviewList:
    """What is due on a day; `prompts` and `versions` were looked at, `requests` of the logs too."""

    day: date
    prompts: int
    versions: int
    requests: int | None
    items: tuple[DueItem, ...]
