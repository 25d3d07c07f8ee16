"""Colours and words that the plots share."""

from __future__ import annotations

from textwrap import wrap

from hotprefix.bench.findings import Target

# Okabe and Ito's palette, told apart with any colour vision; grey is for limits.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
GREY = "#666666"


def number(value: float, unit: str) -> str:
    """A value with its unit, three digits where that is enough."""
    if unit == "s" and abs(value) < 0.001:
        return f"{value * 1e6:.0f} µs"
    if unit == "s" and abs(value) < 1:
        return f"{value * 1000:.1f} ms"
    digits = 0 if abs(value) >= 1000 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()


def verdict(target: Target) -> str:
    """A target in one line, with its mark."""
    mark = {True: "✓", False: "✗", None: "–"}[target.met]
    value = "not judged in this run" if target.value is None else number(target.value, target.unit)
    return f"{mark} {target.name}: {value} ({target.bound} {number(target.limit, target.unit)})"


def folded(text: str, width: int) -> list[str]:
    """`text` in lines of at most `width` characters."""
    return wrap(text, width) or [""]
