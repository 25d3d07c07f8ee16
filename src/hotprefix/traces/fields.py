"""Fields of a record, checked: an error names file, line and field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import isfinite
from typing import Any

from hotprefix.traces.errors import BrokenTrace

_LARGEST = 1 << 40


def required(record: Mapping[str, Any], name: str, place: str) -> Any:
    """A field that has to be there."""
    if name not in record:
        raise BrokenTrace(f"{place} has no {name!r}; it has {', '.join(map(repr, record)) or 'nothing'}.")
    return record[name]


def count(record: Mapping[str, Any], name: str, place: str) -> int:
    """A number of tokens, also as text."""
    value = required(record, name, place)
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _LARGEST:
        raise BrokenTrace(f"{place}: {name!r} is {value!r}; it has to be a number of tokens.")
    return value


def seconds(record: Mapping[str, Any], name: str, place: str) -> float:
    """A number of seconds."""
    value = required(record, name, place)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise BrokenTrace(f"{place}: {name!r} is {value!r}; it has to be a number of seconds.")
    return float(value)


def ids(record: Mapping[str, Any], name: str, place: str) -> Sequence[int]:
    """A list of whole numbers."""
    value = required(record, name, place)
    if not isinstance(value, list) or not set(map(type, value)) <= {int}:
        raise BrokenTrace(f"{place}: {name!r} has to be a list of whole numbers.")
    return value


def moment(text: object, place: str) -> float:
    """A date and time as Unix seconds; UTC unless it says so."""
    try:
        when = text if isinstance(text, datetime) else datetime.fromisoformat(str(text).strip())
    except ValueError as error:
        raise BrokenTrace(f"{place}: {text!r} is no date and time.") from error
    return (when if when.tzinfo is not None else when.replace(tzinfo=UTC)).timestamp()
