"""What could not be counted, told once for each kind with its first place."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from hotprefix.doctor.place import Place


class Trouble(StrEnum):
    """Why a document of a log is not in the figures, or only partly."""

    NO_CALL = "no_call"
    FAILED = "failed"
    NO_ANSWER = "no_answer"
    NO_USAGE = "no_usage"
    BROKEN_USAGE = "broken_usage"
    OTHER_OPERATION = "other_operation"
    GATEWAY_CACHE = "gateway_cache"
    REPEATED = "repeated"
    NESTED_SPAN = "nested_span"
    EVENT_OF_SPAN = "event_of_span"
    TWO_KINDS = "two_kinds"
    NO_TIME = "no_time"
    ASSUMED_PRICE = "assumed_price"
    UNPRICED = "unpriced"
    EARLY_PRICE = "early_price"
    BESIDE = "beside"
    NOT_COMPARED = "not_compared"
    UNRENDERABLE = "unrenderable"


@dataclass(slots=True)
class Troubles:
    """Counts by kind and subject; `subject` is a model or profile where one matters."""

    counts: dict[tuple[Trouble, str], int] = field(default_factory=dict)
    places: dict[tuple[Trouble, str], str] = field(default_factory=dict)

    def add(self, kind: Trouble, place: Place | None = None, subject: str = "", count: int = 1) -> None:
        """Count it; the first place is kept."""
        key = kind, subject
        self.counts[key] = self.counts.get(key, 0) + count
        if place is not None and key not in self.places:
            self.places[key] = str(place)
