"""What a token costs: one row of a price table as exact decimals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from hotprefix.base.errors import LogicError
from hotprefix.profiles.pattern import matches, specificity
from hotprefix.profiles.profile import PriceRow, Profile

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Price:
    """Money per token in `currency`; `write` is by TTL name. A cache not offered has no discount."""

    currency: str
    input: Decimal
    output: Decimal
    read_implicit: Decimal
    read_explicit: Decimal
    read_session: Decimal
    write: dict[str, Decimal]


def price_of(profile: Profile, model: str, day: date) -> Price:
    """The price of `model` on `day` (UTC)."""
    return _price(price_row(profile, model, day))


def price_row(profile: Profile, model: str, day: date) -> PriceRow:
    """The row in force: of those that cover `model` and have begun, the most specific, then the latest.

    Before the first of them, the earliest row for the model, so that a clock that is wrong costs no request.
    """
    rows = [row for row in profile.prices if matches(row.model, model)]
    if not rows:
        raise LogicError(f"profile {profile.name} has no price for {model}; the schema asks for a row '*'")
    begun = [row for row in rows if row.since <= day]
    if begun:
        return max(begun, key=lambda row: (specificity(row.model), row.since))
    return min(rows, key=lambda row: (row.since, tuple(-int(part) for part in specificity(row.model))))


def _price(row: PriceRow) -> Price:
    each = _exact(row.input_per_million) / _MILLION
    return Price(
        currency=row.currency,
        input=each,
        output=_exact(row.output_per_million) / _MILLION,
        read_implicit=each * _exact(row.read_implicit),
        read_explicit=each * _exact(row.read_explicit),
        read_session=each * _exact(row.read_session),
        write={ttl: each * _exact(ratio) for ttl, ratio in row.write.items()},
    )


def _exact(value: float) -> Decimal:
    # The shortest text that gives this float is the number as the file has it.
    return Decimal(repr(float(value)))
