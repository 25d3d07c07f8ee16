"""Numbers as people read them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from unicodedata import category

from hotprefix.doctor.report.figures import Money

DASH = "–"


def printable(text: str) -> str:
    """Words of a log in a terminal: what would steer it shows as a sign."""
    return "".join("\ufffd" if category(one) == "Cc" else one for one in text)


def count(value: int | None) -> str:
    """A whole number; a dash where it is not known."""
    return DASH if value is None else f"{value:,}"


def percent(value: float | None) -> str:
    """A share."""
    return DASH if value is None else f"{value:.1%}"


def seconds(value: float | None) -> str:
    """A time, in milliseconds below one second."""
    if value is None:
        return DASH
    return f"{value * 1000:,.0f} ms" if value < 1 else f"{value:,.2f} s"


def amounts(money: Sequence[Money]) -> str:
    """Money of every currency."""
    return ", ".join(f"{amount(one)} {one.currency}" for one in money) or DASH


def amount(money: Money) -> str:
    """Two digits, or as many as it takes to see anything."""
    value = money.amount
    if value == 0 or abs(value) >= 1:
        return f"{value:,.2f}"
    return f"{value:,.4f}" if abs(value) >= 0.01 else f"{value:,.6f}"


def moment(at: float) -> str:
    """A time, to the minute, in UTC."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"


def width(value: int) -> str:
    """The width of a span of time."""
    for unit, name in ((86_400, "d"), (3600, "h"), (60, "min")):
        if value % unit == 0:
            return f"{value // unit} {name}"
    return f"{value} s"
