"""What stands around an answer in a log: when, for whom, in which conversation, how long it took."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from math import isfinite
from typing import Any

from hotprefix.doctor.report.call import Call
from hotprefix.doctor.report.usage import MOST_DIGITS, Json

_LABELS: dict[str, tuple[str, ...]] = {
    "at": ("timestamp", "at", "time", "created_at", "start_time", "startTime", "ts", "date"),
    "session": ("session_id", "session", "conversation_id", "thread_id", "trace_id"),
    "tenant": ("tenant", "tenant_id", "team", "team_id", "organization", "customer"),
    "scene": ("scene", "x-hotprefix-session", "use_case", "feature", "application", "app"),
    "prompt_name": ("x-hotprefix-prompt", "prompt_name", "prompt_id", "template"),
    "prompt_version": ("prompt_version", "template_version"),
    "request_id": ("request_id",),
    "provider": ("provider", "custom_llm_provider", "vendor"),
    "first_token": (
        "ttft", "first_token", "time_to_first_token", "ttft_s", "time_to_first_token_s", "ttft_ms",
        "time_to_first_token_ms", "first_token_ms",
    ),
    "total": ("total", "total_s", "duration_s", "latency_s", "elapsed_s", "total_ms", "duration_ms",
              "latency_ms", "elapsed_ms"),
}  # fmt: skip
_INDEX = {key: (rank, name) for name, keys in _LABELS.items() for rank, key in enumerate(keys)}
_OUR_HEADERS: dict[str, tuple[str, ...]] = {
    "reason": ("x-hotprefix-miss-reason", "miss-reason"),
    "detail": ("x-hotprefix-miss-detail", "miss-detail"),
    "evidence": ("x-hotprefix-evidence", "evidence"),
    "mode": ("x-hotprefix-cache-mode", "cache-mode"),
}
_EPOCH_MILLIS = 1e11
"""Seconds since 1970 reach this in the year 5138, so larger numbers are milliseconds or finer."""
_BASIC_DATE = len("20261130")


def label(call: Call, holders: Iterable[Json]) -> None:
    """Fill in what is not known yet from `holders`: the first that has it wins."""
    for holder in holders:
        for key, name in _labels_in(tuple(holder)):
            if getattr(call, name) is None:
                _set(call, name, key, holder[key])


@lru_cache(maxsize=1024)
def _labels_in(keys: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Labels among the keys of a document and what they name, the best first. Lines have few shapes."""
    return tuple((key, _INDEX[key][1]) for key in sorted(_INDEX.keys() & set(keys), key=_INDEX.__getitem__))


def _set(call: Call, name: str, key: str, value: Any) -> None:
    if name == "at":
        call.at = moment(value)
    elif name in ("first_token", "total"):
        setattr(call, name, duration(value, 1000.0 if key.endswith("_ms") else 1.0))
    elif (text := _text(value)) is not None:
        setattr(call, name, text)
        if key == "x-hotprefix-prompt":
            call.prompt_name, _, version = text.partition("@")
            call.prompt_version = call.prompt_version or version or None


def read_verdict(call: Call, headers: Json) -> None:
    """The diagnosis that our server puts into its headers and log lines."""
    for name, keys in _OUR_HEADERS.items():
        if getattr(call, name) is None and (found := _text_of(headers, keys)) is not None:
            setattr(call, name, found)
    lost = _text_of(headers, ("x-hotprefix-lost-tokens", "lost-tokens"))
    if call.lost is None and lost is not None and lost.isdecimal() and len(lost) <= MOST_DIGITS:
        call.lost = int(lost)
    avoidable = _text_of(headers, ("x-hotprefix-avoidable", "avoidable"))
    if call.avoidable is None and avoidable is not None:
        call.avoidable = avoidable == "true"


def moment(value: Any) -> float | None:
    """ISO 8601 text, or seconds, milli-, micro- or nanoseconds since 1970; None for earlier times, too."""
    found = _iso(value) if isinstance(value, str) else None
    if found is None:
        found = number(value)
    if found is None or found <= 0:
        return None
    while found > _EPOCH_MILLIS:
        found /= 1000
    return found


def _iso(text: str) -> float | None:
    # Thirteen digits would pass for a date with an hour, though they are milliseconds.
    if text.isdecimal() and len(text) != _BASIC_DATE:
        return None
    try:
        told = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (told if told.tzinfo is not None else told.replace(tzinfo=UTC)).timestamp()


def number(value: Any) -> float | None:
    """A finite number, also one in quotes."""
    try:
        found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    except ValueError:
        return None
    return found if found is not None and isfinite(found) else None


def duration(value: Any, unit: float = 1.0) -> float | None:
    """Seconds, from a number with `unit` of them in a second; negative ones are none."""
    found = number(value)
    return found / unit if found is not None and found >= 0 else None


def headers_of(holder: Json) -> dict[str, Any]:
    """Headers with names in lower case; empty if there are none."""
    found = holder.get("headers")
    if isinstance(found, list):  # pairs, as HAR files have them
        found = {
            str(one.get("name")): one.get("value") for one in found if isinstance(one, dict) and "name" in one
        }
    return {str(name).lower(): value for name, value in found.items()} if isinstance(found, dict) else {}


def _text_of(holder: Json, names: Iterable[str]) -> str | None:
    return next((text for name in names if (text := _text(holder.get(name))) is not None), None)


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value or None
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else None
