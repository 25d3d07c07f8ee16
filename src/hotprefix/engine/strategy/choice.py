"""What a request or a server wants of a strategy, and how that is written."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Span = tuple[int, int]
"""Tokens [start, end) of a prompt."""

_MOST_SPANS = 64
_MOST_TOKENS = 2**31 - 1


class StrategyName(StrEnum):
    """See `docs/STRATEGIES.md`."""

    STATIC = "static"
    DYNAMIC = "dynamic"
    WINDOW = "window"
    MIXED = "mixed"

    @property
    def cuts(self) -> bool:
        """Whether sequences longer than their share of the arena lose tokens instead of being refused."""
        return self in (StrategyName.WINDOW, StrategyName.MIXED)


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """None means "as the server does it".

    `window` is the most tokens in the cache; `sinks` first tokens, the spans `pins` and, if `pins_system`,
    the first `system` tokens always stay; `keys` is the share of the window for tokens that stay for
    their score; `recent` last tokens are never judged.
    """

    name: StrategyName | None = None
    window: int | None = None
    sinks: int | None = None
    keys: float | None = None
    recent: int | None = None
    pins: tuple[Span, ...] = ()
    pins_system: bool = True
    system: int = 0

    @property
    def parts(self) -> set[str]:
        """What is asked for beside the name."""
        numbers = {"window": self.window, "sinks": self.sinks, "keys": self.keys, "recent": self.recent}
        named = {part for part, value in numbers.items() if value is not None}
        return named | {"pin"} if self.pins or not self.pins_system else named


def parse_choice(text: str) -> StrategyChoice:
    """`NAME; window=N; sinks=N; keys=SHARE; recent=N; pin=system,START-END` → a choice.

    All parts but the name may be left out. Raises `ValueError` that says what is wrong.
    """
    name, *settings = (part.strip() for part in text.split(";"))
    values: dict[str, str] = {}
    for setting in settings:
        key, is_set, value = (part.strip() for part in setting.partition("="))
        if not is_set or key not in _PARTS:
            raise ValueError(f"'{setting[:40]}' is none of {', '.join(f'{part}=…' for part in _PARTS)}")
        values[key] = value
    pins, pins_system = _pins(values["pin"]) if "pin" in values else ((), True)
    return StrategyChoice(
        name=_name(name),
        window=_count(values, "window"),
        sinks=_count(values, "sinks"),
        keys=_share(values, "keys"),
        recent=_count(values, "recent"),
        pins=pins,
        pins_system=pins_system,
    )


_PARTS = ("window", "sinks", "keys", "recent", "pin")


def _name(text: str) -> StrategyName:
    try:
        return StrategyName(text.lower())
    except ValueError:
        raise ValueError(
            f"'{text[:40]}' is no strategy; there are {', '.join(name.value for name in StrategyName)}"
        ) from None


def _count(values: dict[str, str], key: str) -> int | None:
    text = values.get(key)
    return None if text is None else number(text, key)


def number(text: str, what: str) -> int:
    """A number of tokens. Raises `ValueError`."""
    if not (text.isascii() and text.isdecimal() and len(text) < 11 and int(text) <= _MOST_TOKENS):
        raise ValueError(f"{what}: '{text[:40]}' is no number of tokens")
    return int(text)


def _share(values: dict[str, str], key: str) -> float | None:
    text = values.get(key)
    if text is None:
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{key}: '{text[:40]}' is no share between 0 and 1")
    return share


def _pins(text: str) -> tuple[tuple[Span, ...], bool]:
    spans: list[Span] = []
    pins_system = False
    for part in (part.strip() for part in text.split(",")):
        if part == "system":
            pins_system = True
        elif part not in ("", "none"):
            start, is_range, end = part.partition("-")
            span = (number(start, "pin"), number(end, "pin")) if is_range else (0, number(start, "pin"))
            if span[0] >= span[1]:
                raise ValueError(f"pin: '{part[:40]}' has no tokens; write START-END, END not included")
            spans.append(span)
    if len(spans) > _MOST_SPANS:
        raise ValueError(f"pin: at most {_MOST_SPANS} spans")
    return tuple(spans), pins_system
